//! Symbols as vectors over GF(2^8), the field of RFC 8681: polynomials over GF(2) modulo
//! x^8 + x^4 + x^3 + x^2 + 1 (RFC 8681 section 3.7).

use rustfs_erasure_codec::galois_8;

/// The product of two elements.
#[must_use]
pub fn mul(a: u8, b: u8) -> u8 {
    galois_8::mul(a, b)
}

/// The inverse of an element.
///
/// # Panics
/// If it is 0, which has none.
#[must_use]
pub fn inverse(a: u8) -> u8 {
    galois_8::div(1, a)
}

/// Adds `factor` times `source` to `target`, which grows with zeros to its length.
pub fn add_scaled(target: &mut Vec<u8>, source: &[u8], factor: u8) {
    if target.len() < source.len() {
        target.resize(source.len(), 0);
    }
    galois_8::mul_slice_xor(factor, source, &mut target[..source.len()]);
}

/// Multiplies all bytes by `factor`.
pub fn scale(target: &mut [u8], factor: u8) {
    let before = target.to_vec();
    galois_8::mul_slice(factor, &before, target);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Schoolbook multiplication: shift, add, reduce.
    fn slow(a: u8, b: u8) -> u8 {
        let mut product = 0_u16;
        for bit in 0..8 {
            if b >> bit & 1 == 1 {
                product ^= u16::from(a) << bit;
            }
        }
        for bit in (8..16).rev() {
            if product >> bit & 1 == 1 {
                product ^= 0x11d << (bit - 8);
            }
        }
        u8::try_from(product).unwrap()
    }

    #[test]
    fn products_and_inverses_are_those_of_the_field() {
        let all: Vec<u8> = (0..=255).collect();
        for a in 0..=255 {
            // Long enough for each of the ways that a processor has.
            let (mut sum, mut product) = (Vec::new(), all.clone());
            add_scaled(&mut sum, &all, a);
            scale(&mut product, a);
            for b in 0..=255 {
                assert_eq!(mul(a, b), slow(a, b), "{a} * {b}");
                assert_eq!(sum[usize::from(b)], slow(a, b), "{a} * {b}");
                assert_eq!(product[usize::from(b)], slow(a, b), "{a} * {b}");
            }
            if a > 0 {
                assert_eq!(mul(a, inverse(a)), 1);
            }
        }
    }

    #[test]
    fn what_is_added_twice_is_gone() {
        let mut sum = vec![1, 2, 3];
        add_scaled(&mut sum, &[9, 8, 7, 6], 0x53);
        add_scaled(&mut sum, &[9, 8, 7, 6], 0x53);
        assert_eq!(sum, [1, 2, 3, 0]);
    }
}
