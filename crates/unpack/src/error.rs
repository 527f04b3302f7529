//! The errors of unpacking a file.

use std::io;

use crate::Packing;

/// The reason why a packed file gives no more than was read.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The file ends inside packed data.
    #[error("the {packing} file is cut short: it ends at byte {at}, before what is packed does")]
    CutShort {
        /// How it is packed.
        packing: Packing,
        /// Bytes of the packed file.
        at: u64,
    },
    /// The unpacked data are not those that were packed.
    #[error("the {packing} file is damaged before byte {at}: {what}")]
    Damaged {
        /// How it is packed.
        packing: Packing,
        /// Up to where the packed file was read.
        at: u64,
        /// The flaw.
        what: String,
    },
    /// The file holds more than its reader has memory for.
    #[error("more than {0} bytes are packed in it (hint: unpack the file, or give a part of it)")]
    TooLarge(u64),
    /// Packed in another way.
    #[error("{0} files are not read, gzip and zstd are (hint: {hint})", hint = .0.hint())]
    Refused(Packing),
}

impl UnpackError {
    /// The error in `error`, or `error` itself if it is that of the system.
    pub fn of(error: io::Error) -> io::Result<Self> {
        error.downcast()
    }
}

impl From<UnpackError> for io::Error {
    fn from(error: UnpackError) -> Self {
        let kind = match error {
            UnpackError::CutShort { .. } => io::ErrorKind::UnexpectedEof,
            UnpackError::TooLarge(_) => io::ErrorKind::FileTooLarge,
            UnpackError::Damaged { .. } | UnpackError::Refused(_) => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
