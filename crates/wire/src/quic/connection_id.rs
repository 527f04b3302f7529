//! Connection IDs, held in place.

use std::fmt;

/// A connection ID of QUIC version 1 or 2: at most 20 bytes, RFC 9000 section 17.2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId {
    length: u8,
    bytes: [u8; Self::LONGEST],
}

impl ConnectionId {
    /// The most bytes that one has.
    pub const LONGEST: usize = 20;

    /// None if `id` is too long.
    #[must_use]
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::LONGEST];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self {
            length: u8::try_from(id.len()).ok()?,
            bytes,
        })
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    /// The number of its bytes; may be 0.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// Whether it has no bytes: then only addresses tell the connection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}
