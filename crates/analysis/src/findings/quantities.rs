//! Numbers as sentences have them.

use std::fmt::{self, Display};

use crate::connection::Nanos;
use crate::durations;

/// A time, in seconds.
pub(super) struct Seconds(pub Nanos);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = durations::seconds(self.0);
        let digits = if seconds.abs() < 1.0 { 3 } else { 2 };
        write!(f, "{seconds:.digits$} s")
    }
}

/// A time of events that may be short: in milliseconds below a second, else in seconds.
pub(super) struct Short(pub Nanos);

impl Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = durations::milliseconds(self.0);
        match ms.abs() {
            0.0 => write!(f, "0 ms"),
            0.0..9.95 => write!(f, "{ms:.1} ms"),
            9.95..999.5 => write!(f, "{ms:.0} ms"),
            _ => write!(f, "{:.2} s", ms / 1e3),
        }
    }
}

/// A number of bytes, in kB or MB.
pub(super) struct Bytes(pub u64);

impl Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..10_000 => write!(f, "{} bytes", self.0),
            10_000..100_000 => write!(f, "{:.0} kB", float(self.0) / 1e3),
            _ => write!(f, "{:.2} MB", float(self.0) / 1e6),
        }
    }
}

/// A share of one.
pub(super) struct Percent(pub f64);

impl Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        let digits = usize::from(percent != 0.0 && percent.abs() < 9.95);
        write!(f, "{percent:.digits$} %")
    }
}

/// Bit/s.
pub(super) struct Rate(pub f64);

impl Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1e6 {
            write!(f, "{:.0} kbit/s", self.0 / 1e3)
        } else {
            write!(f, "{:.1} Mbit/s", self.0 / 1e6)
        }
    }
}

/// A count and its noun: "1 packet", "2 packets".
pub(super) struct Count(pub u64, pub &'static str);

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", self.0, self.1)
    }
}

/// The number as reports show it: beyond 2^53, which no capture reaches, it would lose its last
/// digits.
#[expect(clippy::cast_precision_loss, reason = "only to show a number")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

/// `part` of `whole`; nothing of nothing is nothing.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    float(part) / float(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_people_write_them() {
        assert_eq!(Seconds(3_104_000_000).to_string(), "3.10 s");
        assert_eq!(Seconds(600_000_000).to_string(), "0.600 s");
        assert_eq!(Short(0).to_string(), "0 ms");
        assert_eq!(Short(4_240_000).to_string(), "4.2 ms");
        assert_eq!(Short(82_400_000).to_string(), "82 ms");
        assert_eq!(Short(999_600_000).to_string(), "1.00 s");
        assert_eq!(Bytes(1500).to_string(), "1500 bytes");
        assert_eq!(Bytes(64_240).to_string(), "64 kB");
        assert_eq!(Bytes(1_500_000).to_string(), "1.50 MB");
        assert_eq!(Percent(0.273).to_string(), "27 %");
        assert_eq!(Percent(0.0123).to_string(), "1.2 %");
        assert_eq!(Percent(0.0).to_string(), "0 %");
        assert_eq!(Rate(16_700_000.0).to_string(), "16.7 Mbit/s");
        assert_eq!(Rate(350_000.0).to_string(), "350 kbit/s");
        assert_eq!(Count(1, "packet").to_string(), "1 packet");
        assert_eq!(Count(2, "packet").to_string(), "2 packets");
    }
}
