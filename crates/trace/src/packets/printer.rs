//! Prints the packets of a capture, piece by piece.

use std::io::{self, Write};

use bentpipe_wire::KeyLog;
use bentpipe_wire::capture::{Input, Piece, ReadError};

use super::decoder::Decoder;
use crate::summary::Summary;

/// The outcome of printing a capture.
#[derive(Debug)]
pub struct Printed {
    /// Why not all of it could be read.
    pub unread: Option<ReadError>,
    /// The decoded packets.
    pub summary: Summary,
}

/// Prints the packets of a capture. The error is that of writing.
pub fn print(
    input: &Input<'_>,
    prefix: &str,
    secrets: &KeyLog,
    mut out: impl Write,
) -> io::Result<Printed> {
    let mut decoder = Decoder::new(secrets, prefix.to_owned());
    let unread = match input.pieces() {
        Ok(mut pieces) => {
            let (mut piece, mut lines) = (Piece::default(), Vec::new());
            while pieces.next(&mut piece) {
                lines.clear();
                decoder.decode(&piece, &mut lines);
                out.write_all(&lines)?;
            }
            pieces.failure()
        }
        Err(error) => Some(ReadError::Io(error)),
    };
    Ok(Printed {
        unread,
        summary: decoder.finish(),
    })
}
