//! The coefficients of a repair symbol (RFC 8681 section 3.6, with m = 8).

use crate::tiny_mt::TinyMt32;

/// The density at which no coefficient is 0.
const FULL: u8 = 15;

/// The coefficients of `count` source symbols, in their order.
pub fn coefficients(key: u16, count: u16, density: u8) -> Vec<u8> {
    let mut generator = TinyMt32::new(u32::from(key));
    let one = |_| {
        if density < FULL && generator.next_u8() & 0xf > density {
            return 0;
        }
        loop {
            let coefficient = generator.next_u8();
            if coefficient != 0 {
                return coefficient;
            }
        }
    };
    (0..count).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn density_says_how_many_are_not_0() {
        let share = |density| {
            let all = coefficients(7, 4000, density);
            all.iter().filter(|it| **it != 0).count()
        };
        assert_eq!(share(15), 4000);
        assert!((1850..2150).contains(&share(7)), "{}", share(7));
        assert!((200..300).contains(&share(0)), "{}", share(0));
    }

    #[test]
    fn a_key_is_a_sequence() {
        assert_eq!(coefficients(3, 10, 15), coefficients(3, 20, 15)[..10]);
        assert_ne!(coefficients(3, 10, 15), coefficients(4, 10, 15));
    }
}
