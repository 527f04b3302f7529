//! Puts the data of CRYPTO frames in order, as far as the first handshake message needs it.
//!
//! Source: RFC 9000 section 19.6. Clients spread a `ClientHello` over several frames, and may send
//! them out of order.

/// More than any `ClientHello` or `ServerHello`; what lies beyond is not kept.
const LIMIT: usize = 64 * 1024;

/// The bytes of a CRYPTO stream.
#[derive(Debug, Default)]
pub(super) struct CryptoStream {
    bytes: Vec<u8>,
    /// Sorted ranges of `bytes` that are there; the others are yet to come.
    present: Vec<(usize, usize)>,
}

impl CryptoStream {
    pub(super) fn add(&mut self, offset: u64, data: &[u8]) {
        let Ok(start) = usize::try_from(offset) else {
            return;
        };
        let end = start.saturating_add(data.len());
        if end > LIMIT || data.is_empty() {
            return;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[start..end].copy_from_slice(data);
        self.present.push((start, end));
        self.present.sort_unstable();
        self.present.dedup_by(|later, earlier| {
            let touches = later.0 <= earlier.1;
            if touches {
                earlier.1 = earlier.1.max(later.1);
            }
            touches
        });
    }

    /// The bytes from the beginning of the stream to its first hole.
    pub(super) fn contiguous(&self) -> &[u8] {
        match self.present.first() {
            Some((0, end)) => &self.bytes[..*end],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_in_any_order() {
        let mut stream = CryptoStream::default();
        for (offset, data) in [(6, "gh"), (2, "cde"), (2, "cd"), (u64::MAX, "z")] {
            stream.add(offset, data.as_bytes());
            assert_eq!(stream.contiguous(), b"");
        }
        stream.add(0, b"ab");
        assert_eq!(stream.contiguous(), b"abcde");
        stream.add(4, b"efg");
        assert_eq!(stream.contiguous(), b"abcdefgh");
    }
}
