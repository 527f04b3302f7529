//! The hash that shows whether two trials had the same packets.

use std::fmt;

use twox_hash::XxHash3_128;

/// XXH3 with 128 bits. Nobody forges packets here: what matters is that other packets have another
/// hash, and that hashing costs less than a copy.
#[derive(Clone)]
pub struct PacketHash(XxHash3_128);

impl PacketHash {
    /// The hash of nothing.
    pub fn new() -> Self {
        Self(XxHash3_128::new())
    }

    /// Goes on with some bytes.
    pub fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write(bytes.as_ref());
    }

    /// The hash so far, behind the name of its function.
    pub fn in_words(&self) -> String {
        format!("xxh3:{:032x}", self.0.finish_128())
    }
}

impl fmt::Debug for PacketHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PacketHash").field(&self.in_words()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_reference_implementation() {
        // XXH3_128bits of xxHash 0.8, seed 0; the second in two pieces.
        let mut hash = PacketHash::new();
        assert_eq!(hash.in_words(), "xxh3:99aa06d3014798d86001c324468d497f");
        hash.update(b"a");
        assert_eq!(hash.in_words(), "xxh3:a96faf705af16834e6c632b61e964e1f");
        hash.update(b"bc");
        assert_eq!(hash.in_words(), "xxh3:06b05ab6733a618578af5f94892f3950");
    }
}
