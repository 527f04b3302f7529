//! `TinyMT32`, the generator of coding coefficients (RFC 8682).

const MAT1: u32 = 0x8f70_11ee;
const MAT2: u32 = 0xfc78_ff1f;
const TMAT: u32 = 0x3793_fdff;

/// A generator of 32-bit numbers, the same everywhere for the same seed.
#[derive(Debug, Clone)]
pub struct TinyMt32 {
    status: [u32; 4],
}

impl TinyMt32 {
    /// The generator of a seed (RFC 8682 section 2.1).
    #[must_use]
    pub fn new(seed: u32) -> Self {
        let mut status = [seed, MAT1, MAT2, TMAT];
        for i in 1..8_u32 {
            let before = status[(i as usize - 1) & 3];
            let mixed = (before ^ before >> 30).wrapping_mul(1_812_433_253);
            status[i as usize & 3] ^= i.wrapping_add(mixed);
        }
        let mut new = Self { status };
        for _ in 0..8 {
            new.next_state();
        }
        new
    }

    /// The next number.
    pub fn next_u32(&mut self) -> u32 {
        self.next_state();
        let [first, _, third, fourth] = self.status;
        let sum = first.wrapping_add(third >> 8);
        fourth ^ sum ^ mask(sum, TMAT)
    }

    /// The next number from 0 to 255.
    pub fn next_u8(&mut self) -> u8 {
        self.next_u32().to_le_bytes()[0]
    }

    fn next_state(&mut self) {
        let [first, second, third, fourth] = self.status;
        let mut x = (first & 0x7fff_ffff) ^ second ^ third;
        x ^= x << 1;
        let y = fourth ^ fourth >> 1 ^ x;
        self.status = [
            second,
            third ^ mask(y, MAT1),
            x ^ y << 10 ^ mask(y, MAT2),
            y,
        ];
    }
}

/// `value` if `of` is odd, else 0.
fn mask(of: u32, value: u32) -> u32 {
    if of & 1 == 1 { value } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_rfc_8682() {
        // Section 2.3 of RFC 8682: the first numbers of seed 1.
        let expected = [
            2_545_341_989,
            981_918_433,
            3_715_302_833,
            2_387_538_352,
            3_591_001_365,
            3_820_442_102,
            2_114_400_566,
            2_196_103_051,
            2_783_359_912,
            764_534_509,
        ];
        let mut generator = TinyMt32::new(1);
        assert_eq!(expected.map(|_| generator.next_u32()), expected);
    }
}
