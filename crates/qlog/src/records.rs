//! The records of a sequence: JSON text sequences (RFC 7464), and lines of JSON.
//!
//! A record ends where the next one begins, whatever it holds, so that a damaged one costs no
//! other.

use crate::reader::Format;

/// Goes before every record of a JSON text sequence (RFC 7464).
pub const RECORD_SEPARATOR: u8 = 0x1e;

/// Splits a sequence into records, and gives each with its offset. Empty ones are left out.
pub struct Records<'a> {
    pub file: &'a [u8],
    /// The byte to be read next.
    pub at: usize,
    pub format: Format,
}

impl<'a> Iterator for Records<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let end_of_record = match self.format {
            Format::JsonSeq => RECORD_SEPARATOR,
            Format::Ndjson | Format::Json => b'\n',
        };
        while self.at < self.file.len() {
            let rest = &self.file[self.at..];
            let length = rest
                .iter()
                .position(|byte| *byte == end_of_record)
                .unwrap_or(rest.len());
            let record = rest[..length].trim_ascii();
            let offset = self.at + (rest[..length].len() - rest[..length].trim_ascii_start().len());
            self.at += (length + 1).min(rest.len());
            if !record.is_empty() {
                return Some((offset, record));
            }
        }
        None
    }
}
