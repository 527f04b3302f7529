//! The header before a frame, or before each part of it.

/// The header of a frame, or of a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The number of the frame, from 0.
    pub number: u32,
    /// The time at which it was made, in nanoseconds since 1970.
    pub made_ns: u64,
    /// Bytes of the whole frame.
    pub size: u32,
    /// The offset of the part in the frame.
    pub offset: u32,
}

impl Header {
    /// Bytes that it takes.
    pub const LENGTH: usize = 20;

    pub fn encode(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..4].copy_from_slice(&self.number.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.made_ns.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.size.to_le_bytes());
        bytes[16..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    /// The header at the front of `bytes`, and what is behind it; `None` if there are too few.
    pub fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (number, rest) = bytes.split_first_chunk()?;
        let (made_ns, rest) = rest.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let header = Self {
            number: u32::from_le_bytes(*number),
            made_ns: u64::from_le_bytes(*made_ns),
            size: u32::from_le_bytes(*size),
            offset: u32::from_le_bytes(*offset),
        };
        Some((header, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = Header {
            number: 7,
            made_ns: u64::MAX - 1,
            size: 1000,
            offset: 400,
        };
        let mut bytes = header.encode().to_vec();
        assert_eq!(Header::decode(&bytes[..19]), None);
        bytes.extend(b"part");
        assert_eq!(Header::decode(&bytes), Some((header, &b"part"[..])));
    }
}
