//! The records of a sequence: JSON text sequences (RFC 7464), and lines of JSON.
//!
//! A record of a text sequence ends where the next one begins, whatever it holds, so that a damaged
//! one costs no other; so does one of a line. Lines of JSON may also be printed over many lines
//! each: then a record ends with its object or, if that is damaged, before a line that begins with
//! one.

use serde::de::IgnoredAny;

use crate::scan::Scanner;

/// Goes before every record of a JSON text sequence (RFC 7464).
pub const RECORD_SEPARATOR: u8 = 0x1e;

/// Lines that begin with an object at which the end of a record is looked for: printed without
/// indentation, a record has such lines within it.
const MOST_LINES_WITHIN: usize = 64;

/// The format of a file: how its events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON value with all traces in it.
    Json,
    /// A record per event, with a record separator before each (RFC 7464).
    JsonSeq,
    /// A line per event.
    Ndjson,
}

/// Splits a sequence into records, and gives each with its offset. Empty ones are left out.
pub struct Records<'a> {
    pub file: &'a [u8],
    /// The byte to be read next.
    pub at: usize,
    pub format: Format,
    /// Its records, lines of JSON, are printed over many lines.
    pub over_lines: bool,
}

impl<'a> Records<'a> {
    /// Lines of JSON. Whether they are printed over many lines each, the first two tell: the header
    /// and an event.
    pub fn lines(file: &'a [u8], at: usize) -> Self {
        let records = |over_lines| Self {
            file,
            at,
            format: Format::Ndjson,
            over_lines,
        };
        let mut first = records(true).take(2);
        records(first.any(|(_, text)| text.contains(&b'\n') && is_json(text)))
    }

    /// Where the record that begins at `start` ends.
    fn end(&self, start: usize) -> usize {
        if self.over_lines && self.file[start] == b'{' {
            return self.end_over_lines(start);
        }
        let end_of_record = match self.format {
            Format::JsonSeq => RECORD_SEPARATOR,
            Format::Ndjson | Format::Json => b'\n',
        };
        let mut rest = self.file[start..].iter();
        let length = rest.position(|byte| *byte == end_of_record);
        length.map_or(self.file.len(), |length| start + length)
    }

    fn end_over_lines(&self, start: usize) -> usize {
        let first = self.next_object(start);
        let value_until = |until: usize| {
            let mut scanner = Scanner::new(&self.file[..until], start);
            scanner.value().ok().map(|value| (scanner.at, value))
        };
        if let Some((end, _)) = value_until(first) {
            return end;
        }
        let mut until = first;
        for _ in 0..MOST_LINES_WITHIN {
            until = self.next_object(until);
        }
        match value_until(until) {
            Some((end, value)) if is_json(value) => end,
            _ => first,
        }
    }

    /// The next line behind `at` that begins with an object.
    fn next_object(&self, at: usize) -> usize {
        let begins = |pair: &[u8]| pair[0] == b'\n' && matches!(pair[1], b'{' | RECORD_SEPARATOR);
        let found = self.file[at..].windows(2).position(begins);
        found.map_or(self.file.len(), |found| at + found + 1)
    }
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// Whether a byte belongs to no record: text sequences have lines between theirs, and some writers
/// of lines put separators there.
fn is_between(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == RECORD_SEPARATOR
}

impl<'a> Iterator for Records<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.file[self.at..].iter();
        let Some(begins) = rest.position(|byte| !is_between(*byte)) else {
            self.at = self.file.len();
            return None;
        };
        let start = self.at + begins;
        self.at = self.end(start);
        Some((start, self.file[start..self.at].trim_ascii_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(file: &str) -> Vec<&str> {
        let found = Records::lines(file.as_bytes(), 0);
        found
            .map(|(_, text)| str::from_utf8(text).unwrap())
            .collect()
    }

    #[test]
    fn records_are_lines_or_objects_over_lines() {
        for (file, expected) in [
            ("{}\n{\n}\n", vec!["{}", "{\n}"]),
            ("{\n}\n\n{}{}\n", vec!["{\n}", "{}", "{}"]),
            (
                "{\"a\": [\n{\n},\n{\n}\n]\n}\n{}",
                vec!["{\"a\": [\n{\n},\n{\n}\n]\n}", "{}"],
            ),
            (
                "{\n}\n{\n\"a\": \"\n{}\n",
                vec!["{\n}", "{\n\"a\": \"", "{}"],
            ),
            ("{\n}\nx\ny\n{}", vec!["{\n}", "x", "y", "{}"]),
            (
                "{}\n{\"a\"\n{}\n{\"b\n{}\n",
                vec!["{}", "{\"a\"", "{}", "{\"b", "{}"],
            ),
            ("\u{1e}{}\n\u{1e}{}\n", vec!["{}", "{}"]),
        ] {
            assert_eq!(records(file), expected, "{file:?}");
        }
    }

    #[test]
    fn damage_costs_no_more_than_a_few_lines_each() {
        let file = "{\n}\n".to_owned() + &"{\"a\":\n {\n".repeat(200_000);
        assert_eq!(records(&file).len(), 200_001);
    }
}
