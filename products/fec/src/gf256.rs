//! Arithmetic in GF(2^8), the field of RFC 8681: polynomials over GF(2) modulo
//! x^8 + x^4 + x^3 + x^2 + 1 (RFC 8681 section 3.7).

/// The field's polynomial, as bits.
const POLYNOMIAL: u16 = 0x11d;

/// Logarithms to the base x, and their inverse, twice over so that sums need no modulus.
struct Tables {
    log: [u8; 256],
    exp: [u8; 510],
}

const TABLES: Tables = tables();

const fn tables() -> Tables {
    let (mut log, mut exp) = ([0; 256], [0; 510]);
    let (mut value, mut power) = (1_u16, 0);
    while power < 255 {
        #[expect(clippy::cast_possible_truncation, reason = "both are below 256 here")]
        {
            exp[power] = value as u8;
            exp[power + 255] = value as u8;
            log[value as usize] = power as u8;
        }
        value <<= 1;
        if value > 0xff {
            value ^= POLYNOMIAL;
        }
        power += 1;
    }
    Tables { log, exp }
}

/// The product of two elements.
#[must_use]
pub fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let power = usize::from(TABLES.log[usize::from(a)]) + usize::from(TABLES.log[usize::from(b)]);
    TABLES.exp[power]
}

/// The inverse of an element.
///
/// # Panics
/// If it is 0, which has none.
#[must_use]
pub fn inverse(a: u8) -> u8 {
    assert_ne!(a, 0, "0 has no inverse");
    TABLES.exp[255 - usize::from(TABLES.log[usize::from(a)])]
}

/// Adds `factor` times `source` to `target`, which grows with zeros to its length.
pub fn add_scaled(target: &mut Vec<u8>, source: &[u8], factor: u8) {
    if target.len() < source.len() {
        target.resize(source.len(), 0);
    }
    if factor == 0 {
        return;
    }
    // One row of the multiplication table: one look-up for each byte.
    let mut row = [0; 256];
    for (byte, product) in (0..=255).zip(&mut row) {
        *product = mul(byte, factor);
    }
    for (sum, byte) in target.iter_mut().zip(source) {
        *sum ^= row[usize::from(*byte)];
    }
}

/// Multiplies all bytes by `factor`.
pub fn scale(target: &mut [u8], factor: u8) {
    for byte in target {
        *byte = mul(*byte, factor);
    }
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
                product ^= POLYNOMIAL << (bit - 8);
            }
        }
        u8::try_from(product).unwrap()
    }

    #[test]
    fn products_and_inverses_are_those_of_the_field() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), slow(a, b), "{a} * {b}");
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
