//! Exponentially distributed spans, without floats.

use bentpipe_units::Span;

use crate::random::Dice;

/// ln 2 in 2^-32.
const LN_2: u128 = 2_977_044_472;

/// A span that is exponentially distributed, by inversion: `-mean * ln(u)` for a uniform `u` above
/// 0. One 64-bit draw each; exact to 2^-32 of the mean.
pub(super) fn exponential(mean: Span, dice: &mut Dice) -> Span {
    let factor = minus_ln(dice.bits());
    let nanos = (u128::from(mean.as_nanos()) * factor) >> 32;
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// `-ln((bits + 1) / 2^64)` in 2^-32.
fn minus_ln(bits: u64) -> u128 {
    let Some(number) = bits.checked_add(1) else {
        return 0;
    };
    let shift = number.leading_zeros();
    // log2(number) = 63 - shift + log2(mantissa), with the mantissa in [1, 2) as 2^-63.
    let mut mantissa = number << shift;
    let mut fraction: u64 = 0;
    for _ in 0..32 {
        let square = (u128::from(mantissa) * u128::from(mantissa)) >> 63;
        let carries = square >> 64 != 0;
        fraction = fraction << 1 | u64::from(carries);
        mantissa = u64::try_from(square >> u32::from(carries)).expect("it is in [1, 2)");
    }
    let log2 = u128::from(63 - shift) << 32 | u128::from(fraction);
    (((64 << 32) - log2) * LN_2) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::cast_precision_loss, reason = "held to 1e-7")]
    #[test]
    fn logarithms_are_those_of_a_calculator() {
        for bits in [
            0,
            1,
            2,
            12_345,
            1 << 40,
            u64::MAX / 3,
            u64::MAX - 1,
            u64::MAX,
        ] {
            let u = (bits as f64 + 1.0) / 2f64.powi(64);
            let ours = minus_ln(bits) as f64 / 2f64.powi(32);
            assert!(
                (ours + u.ln()).abs() < 1e-7,
                "{bits}: {ours} and {}",
                -u.ln()
            );
        }
    }
}
