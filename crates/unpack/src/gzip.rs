//! Files of gzip: members, one after the other.

use std::io::{self, Read};

use flate2::bufread::MultiGzDecoder;

use crate::Packing;
use crate::source::Source;

/// The content of all members.
pub(crate) struct Members<R: Read>(MultiGzDecoder<Source<R>>);

impl<R: Read> Members<R> {
    pub(crate) fn new(source: Source<R>) -> Self {
        Self(MultiGzDecoder::new(source))
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(self.0.get_mut().blame(Packing::Gzip, &error)),
            read => read,
        }
    }
}
