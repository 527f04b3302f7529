//! The output of a command inside its guest, handed on as it arrives: to descriptors 5 and 6,
//! standard output and standard error.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::path::Path;

use bentpipe_endpoint::EndpointError;
use rustix::io::{FdFlags, fcntl_setfd};

use crate::task::PRINTED;

const DESCRIPTORS: [RawFd; 2] = [5, 6];

/// The output of a command, which is handed on.
pub struct Printed {
    streams: [Stream; 2],
}

/// A file that a guest appends to, and where what is in it goes: nowhere, when nobody reads there.
struct Stream {
    from: File,
    to: Option<File>,
}

impl Printed {
    /// Makes the files in the shared folder. To be called once, before any other file is opened.
    #[expect(
        unsafe_code,
        reason = "descriptors that a process is born with have no owner yet"
    )]
    pub fn inherited(folder: &Path) -> Result<Self, EndpointError> {
        // SAFETY: nothing else in this process owns these two; if they are not open, the next call
        // says so.
        let [output, error] = DESCRIPTORS.map(|number| unsafe { File::from_raw_fd(number) });
        let [of_output, of_error] = PRINTED.map(|name| folder.join(name));
        Ok(Self {
            streams: [
                Stream::open(&of_output, output)?,
                Stream::open(&of_error, error)?,
            ],
        })
    }

    /// Hands on what has been printed since it was last asked.
    pub fn hand_on(&mut self) -> Result<(), EndpointError> {
        self.streams.iter_mut().try_for_each(Stream::hand_on)
    }
}

impl Stream {
    fn open(path: &Path, to: File) -> Result<Self, EndpointError> {
        // The guest's processes must not keep it open.
        fcntl_setfd(&to, FdFlags::CLOEXEC)
            .map_err(|error| EndpointError::io("descriptors 5 and 6")(error.into()))?;
        File::create(path).map_err(EndpointError::file(path))?;
        let from = File::open(path).map_err(EndpointError::file(path))?;
        Ok(Self { from, to: Some(to) })
    }

    fn hand_on(&mut self) -> Result<(), EndpointError> {
        let mut text = Vec::new();
        self.from
            .read_to_end(&mut text)
            .map_err(EndpointError::io("reading what the command prints"))?;
        // Where nobody reads any more, as behind `| head`, the command goes on all the same.
        if self
            .to
            .as_mut()
            .is_some_and(|to| to.write_all(&text).is_err())
        {
            self.to = None;
        }
        Ok(())
    }
}
