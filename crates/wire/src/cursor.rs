//! Reads fields of network byte order off the front of some bytes, and never beyond their end.

/// The bytes that are not yet read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A variable-length integer, RFC 9000 section 16.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let first = u64::from(*self.rest.first()?);
        Some(match first >> 6 {
            0 => {
                self.rest = &self.rest[1..];
                first
            }
            1 => u64::from(self.u16()?) & 0x3fff,
            2 => u64::from(self.u32()?) & 0x3fff_ffff,
            _ => u64::from_be_bytes(self.array()?) & 0x3fff_ffff_ffff_ffff,
        })
    }

    /// The next bytes, whose number is in a variable-length integer before them.
    pub(crate) fn counted(&mut self) -> Option<&'a [u8]> {
        let count = self.varint()?;
        self.take(usize::try_from(count).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_rfc_9000_appendix_a1() {
        for (bytes, value) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            let mut cursor = Cursor::new(bytes);
            assert_eq!(cursor.varint(), Some(value));
            assert!(cursor.rest().is_empty());
            assert_eq!(Cursor::new(&bytes[..bytes.len() - 1]).varint(), None);
        }
    }
}
