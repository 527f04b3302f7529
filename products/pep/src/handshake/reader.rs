//! Bytes of somebody else's packet, taken off the front one field after the other: no more than
//! there are.

/// The bytes that are left.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// A variable-length integer (RFC 9000, section 16).
    pub fn integer(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let more = self.take((1 << (first >> 6)) - 1)?;
        let start = u64::from(first & 0x3f);
        Some(
            more.iter()
                .fold(start, |all, byte| all << 8 | u64::from(*byte)),
        )
    }

    /// An integer of `bytes` bytes, as TLS has them.
    pub fn number(&mut self, bytes: usize) -> Option<usize> {
        let digits = self.take(bytes)?;
        Some(
            digits
                .iter()
                .fold(0, |all, byte| all << 8 | usize::from(*byte)),
        )
    }

    /// A field that is preceded by its length, a number of `bytes` bytes.
    pub fn vector(&mut self, bytes: usize) -> Option<Reader<'a>> {
        let length = self.number(bytes)?;
        self.take(length).map(Reader)
    }
}
