//! The errors of reading a qlog file.

/// An error in a qlog file: what could not be read, where, and why. Reading goes on behind it where
/// there is a next record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QlogError {
    /// No qlog file of any version.
    #[error(
        "line {line}: not a qlog file: {why} (hint: it begins with an object that has qlog_version \
         or file_schema, or with events)"
    )]
    NotQlog {
        /// Line of the file, from 1.
        line: usize,
        /// The missing part.
        why: String,
    },
    /// The file ends inside something.
    #[error(
        "line {line}, byte {offset}: the file is cut short: {what} begins here and its end is \
         missing"
    )]
    CutShort {
        /// Line of the file, from 1.
        line: usize,
        /// Byte of the file, from 0.
        offset: usize,
        /// The incomplete part.
        what: &'static str,
    },
    /// Something is there, but not what has to be.
    #[error("line {line}, byte {offset}: {what}")]
    Garbage {
        /// Line of the file, from 1.
        line: usize,
        /// Byte of the file, from 0.
        offset: usize,
        /// The flaw.
        what: String,
    },
}
