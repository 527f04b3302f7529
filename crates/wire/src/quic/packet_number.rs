//! Full packet numbers from the few bits that are sent.
//!
//! Source: RFC 9000 section 17.1 and appendix A.3.

/// The packet number that ends in the `length` bytes of `truncated`, and is closest to the one
/// after `largest`, the largest that was seen in this packet number space from this end.
pub(super) fn reconstruct(largest: Option<u64>, truncated: u32, length: usize) -> u64 {
    let window = 1_u64 << (8 * length);
    let half = window / 2;
    let expected = largest.map_or(0, |largest| largest + 1);
    let candidate = expected & !(window - 1) | u64::from(truncated);
    if candidate + half <= expected && candidate < (1 << 62) - window {
        candidate + window
    } else if candidate > expected + half && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_of_appendix_a3() {
        assert_eq!(reconstruct(Some(0xa82f_30ea), 0x9b32, 2), 0xa82f_9b32);
    }

    #[test]
    fn a_packet_seen_again_keeps_its_number() {
        for number in [0, 1, 254, 255, 256, 511, 512] {
            let low = u32::try_from(number & 0xff).unwrap();
            assert_eq!(reconstruct(Some(number), low, 1), number);
        }
        assert_eq!(reconstruct(None, 0, 1), 0);
        assert_eq!(reconstruct(Some(256), 255, 1), 255);
        assert_eq!(reconstruct(Some((1 << 62) - 1), 255, 1), (1 << 62) - 1);
    }
}
