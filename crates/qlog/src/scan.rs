//! Finds where JSON values begin and end, without parsing them.
//!
//! A contained qlog file is one JSON value. To read its events one by one, and to read those before
//! the byte at which it was cut, only its brackets and strings are followed here; what is between
//! them is parsed later, event by event. Commas are taken as white space, so that one too many is
//! no fault.

/// The fault at which reading stopped: the file ends in, or has something else at the place of,
/// what begins at `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanError {
    /// The value that begins here has no end.
    CutShort { offset: usize },
    /// No value begins here.
    NoValue { offset: usize },
}

/// A place in a JSON text.
#[derive(Debug, Clone, Copy)]
pub struct Scanner<'a> {
    text: &'a [u8],
    /// The byte to be read next.
    pub at: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8], at: usize) -> Self {
        Self { text, at }
    }

    /// The next byte that is neither white space nor a comma.
    pub fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Goes behind `byte`, if it is next.
    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The key of an object's next member, between its quotes; none at the object's end.
    pub fn key(&mut self) -> Result<Option<&'a [u8]>, ScanError> {
        let offset = self.at;
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b'"') => {}
            Some(_) => return Err(ScanError::NoValue { offset: self.at }),
            None => return Err(ScanError::CutShort { offset }),
        }
        let string = self.value()?;
        if self.eat(b':') {
            Ok(Some(&string[1..string.len() - 1]))
        } else if self.at == self.text.len() {
            Err(ScanError::CutShort { offset })
        } else {
            Err(ScanError::NoValue { offset: self.at })
        }
    }

    /// An array's next element; none at the array's end.
    pub fn element(&mut self) -> Result<Option<&'a [u8]>, ScanError> {
        if self.eat(b']') {
            return Ok(None);
        }
        self.value().map(Some)
    }

    /// The next value. Only its brackets, its quotes and its end are known to be right.
    pub fn value(&mut self) -> Result<&'a [u8], ScanError> {
        let first = self.peek();
        let offset = self.at;
        let rest = &self.text[offset..];
        let length = match first {
            Some(b'{' | b'[') => compound_length(rest),
            Some(b'"') => string_length(rest),
            Some(_) => match rest.iter().position(|byte| ends_a_scalar(*byte)) {
                Some(0) => return Err(ScanError::NoValue { offset }),
                length => length,
            },
            None => None,
        };
        let length = length.ok_or(ScanError::CutShort { offset })?;
        self.at += length;
        Ok(&rest[..length])
    }
}

fn ends_a_scalar(byte: u8) -> bool {
    matches!(
        byte,
        b',' | b']' | b'}' | b':' | b'"' | b' ' | b'\t' | b'\r' | b'\n'
    )
}

/// Bytes of the string that `text` begins with, quotes included.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += text
            .get(at..)?
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\'))?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Bytes of the object or array that `text` begins with, brackets included.
fn compound_length(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b'"' => {
                at += string_length(&text[at..])?;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found() {
        let text = br#" {"a":[1,{"b":"}\"]"}],"c":2.5} x"#;
        let mut scanner = Scanner::new(text, 0);
        assert!(scanner.eat(b'{'));
        assert_eq!(scanner.key(), Ok(Some(&b"a"[..])));
        assert_eq!(scanner.value(), Ok(&br#"[1,{"b":"}\"]"}]"#[..]));
        assert_eq!(scanner.key(), Ok(Some(&b"c"[..])));
        assert_eq!(scanner.value(), Ok(&b"2.5"[..]));
        assert_eq!(scanner.key(), Ok(None));
        assert_eq!(scanner.key(), Err(ScanError::NoValue { offset: 32 }));
    }

    #[test]
    fn a_comma_too_many_is_no_fault() {
        let mut scanner = Scanner::new(b"1,,2,]", 0);
        assert_eq!(scanner.element(), Ok(Some(&b"1"[..])));
        assert_eq!(scanner.element(), Ok(Some(&b"2"[..])));
        assert_eq!(scanner.element(), Ok(None));
    }

    #[test]
    fn what_is_cut_is_told_from_what_is_none() {
        for (text, offset) in [
            (&b"[1, {\"a"[..], 0),
            (b" \"abc", 1),
            (b"\"a\\", 0),
            (b" ", 1),
        ] {
            let mut scanner = Scanner::new(text, 0);
            assert_eq!(scanner.value(), Err(ScanError::CutShort { offset }));
        }
        for (text, offset) in [(&b"}"[..], 0), (b" :", 1)] {
            let mut scanner = Scanner::new(text, 0);
            assert_eq!(scanner.value(), Err(ScanError::NoValue { offset }));
        }
    }
}
