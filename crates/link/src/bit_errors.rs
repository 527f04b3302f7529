//! Packets that are lost because of bit errors: long ones more often than short ones.
//!
//! The model: each bit of an IP packet is wrong with the same probability `p`, independent of the
//! others, and a packet with a wrong bit is lost, as below a checksum of the link. A packet of `n`
//! bytes is lost with the probability `1 - (1 - p)^(8n)`. Headers of the link do not count.

use std::fmt;
use std::str::FromStr;

use bentpipe_units::Time;
use serde::{Serialize, Serializer};

use crate::node::{Node, Step, Transit};
use crate::random::Dice;

/// The share of bits that are wrong, written `"1e-6"`: from 10^-18 to below 1, exactly, in units of
/// 10^-18.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitErrorRate(u64);

/// Digits behind the point.
const DIGITS: u32 = 18;
const UNIT: u128 = 10_u128.pow(DIGITS);
/// Certainty, in units of 2^-64.
const ONE: u128 = 1 << 64;

impl BitErrorRate {
    /// In units of 10^-18.
    #[must_use]
    pub fn attos(self) -> u64 {
        self.0
    }

    /// The probability that a packet of `ip_bytes` bytes is lost, in units of 2^-64; its error is
    /// below 2^-44 for the largest packet. Integers give the same everywhere.
    fn loss_of(self, ip_bytes: u32) -> u128 {
        let survives = ONE - u128::from(self.0) * ONE / UNIT;
        let mut power = ONE;
        // Of the bits of the exponent, the highest first. Only a product of two certainties, which
        // is none, would not fit.
        let exponent = u64::from(ip_bytes) * 8;
        for bit in (0..u64::BITS - exponent.leading_zeros()).rev() {
            power = product(power, power);
            if (exponent >> bit) & 1 == 1 {
                power = product(power, survives);
            }
        }
        ONE - power
    }
}

/// The product of two probabilities, in units of 2^-64.
fn product(one: u128, other: u128) -> u128 {
    if one == ONE {
        other
    } else {
        (one * other) >> 64
    }
}

fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

impl FromStr for BitErrorRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = |what: &str| format!("{text}: {what}; write it like \"1e-6\"");
        let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}");
        let exponent: i64 = exponent
            .parse()
            .map_err(|_| wrong("not a rate of bit errors"))?;
        if whole.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(wrong("not a rate of bit errors"));
        }
        let zeros = exponent
            .saturating_sub(length(fraction))
            .saturating_add(i64::from(DIGITS));
        let digits = digits.trim_start_matches('0');
        // A number ends with as many zeros as are to be taken from it.
        let kept = digits.trim_end_matches('0');
        let zeros = zeros.saturating_add(length(digits) - length(kept));
        if kept.is_empty() {
            return Err(wrong("no bit is ever wrong; leave bit_errors out, or"));
        }
        if zeros < 0 {
            return Err(wrong("finer than 1e-18"));
        }
        let scale = u32::try_from(zeros)
            .ok()
            .and_then(|zeros| 10_u64.checked_pow(zeros));
        let attos = scale.and_then(|scale| kept.parse::<u64>().ok()?.checked_mul(scale));
        match attos.filter(|attos| u128::from(*attos) < UNIT) {
            Some(attos) => Ok(Self(attos)),
            None => Err(wrong("every bit would be wrong")),
        }
    }
}

impl fmt::Display for BitErrorRate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let digits = self.0.to_string();
        let exponent = DIGITS as usize + 1 - digits.len();
        let (first, rest) = digits.split_at(1);
        match rest.trim_end_matches('0') {
            "" => write!(f, "{first}e-{exponent}"),
            rest => write!(f, "{first}.{rest}e-{exponent}"),
        }
    }
}

impl Serialize for BitErrorRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The bit errors of one link.
pub(crate) struct BitErrors {
    rate: BitErrorRate,
    dice: Dice,
    /// The length of the last packet, and the probability for it: most have the same.
    last: (u32, u128),
}

impl BitErrors {
    pub fn new(rate: BitErrorRate, dice: Dice) -> Self {
        Self {
            rate,
            dice,
            last: (0, 0),
        }
    }
}

impl Node for BitErrors {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        let ip_bytes = transit.packet.ip_bytes;
        if self.last.0 != ip_bytes {
            self.last = (ip_bytes, self.rate.loss_of(ip_bytes));
        }
        transit.is_lost |= self.dice.chance_of(self.last.1);
        Step::Leave { at: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(rate: &str, ip_bytes: u32) -> u128 {
        rate.parse::<BitErrorRate>().unwrap().loss_of(ip_bytes)
    }

    #[expect(clippy::cast_precision_loss, reason = "compared to ten digits")]
    fn share(probability: u128) -> f64 {
        probability as f64 / ONE as f64
    }

    #[test]
    fn probabilities_are_those_of_the_formula() {
        // 1 - (1/2)^8 and 1 - (1/2)^16, exactly.
        assert_eq!(loss("0.5", 1), ONE - (ONE >> 8));
        assert_eq!(loss("0.5", 2), ONE - (ONE >> 16));
        assert_eq!(loss("0.5", 0), 0);
        for (rate, ip_bytes) in [("1e-6", 1500), ("1e-5", 65_535), ("1e-12", 1500)] {
            let found = share(loss(rate, ip_bytes));
            let none_wrong = f64::ln_1p(-rate.parse::<f64>().unwrap()) * f64::from(ip_bytes) * 8.0;
            let expected = -none_wrong.exp_m1();
            assert!(
                (found - expected).abs() < 1e-13 + expected * 1e-10,
                "{found} {expected}"
            );
        }
        assert!((0.0119..0.0120).contains(&share(loss("1e-6", 1500))));
    }

    #[test]
    fn rates_are_read_exactly_and_written_again() {
        for (text, attos, again) in [
            ("1e-6", 1_000_000_000_000, "1e-6"),
            ("0.000001", 1_000_000_000_000, "1e-6"),
            ("2.50E-7", 250_000_000_000, "2.5e-7"),
            ("250e-9", 250_000_000_000, "2.5e-7"),
            ("1e-18", 1, "1e-18"),
            ("10e-19", 1, "1e-18"),
            ("0.5", 500_000_000_000_000_000, "5e-1"),
        ] {
            let rate: BitErrorRate = text.parse().unwrap();
            assert_eq!((rate.attos(), rate.to_string().as_str()), (attos, again));
            assert_eq!(again.parse(), Ok(rate));
        }
        for wrong in [
            "",
            "e-6",
            "1e",
            "1e-19",
            "1",
            "1e0",
            "7e99",
            "0",
            "0e-6",
            "-1e-6",
            "1e-6 %",
            "1e-99999999999999999999",
            "1.5e-18",
            "1..0e-6",
            "99999999999999999999e-18",
        ] {
            assert!(wrong.parse::<BitErrorRate>().is_err(), "{wrong}");
        }
    }
}
