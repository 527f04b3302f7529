//! A number of packets.

use std::fmt;
use std::str::FromStr;

/// A number of packets, written `"25 packets"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packets(pub u64);

impl FromStr for Packets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let number = text
            .strip_suffix("packets")
            .or_else(|| text.strip_suffix("packet"));
        match number.map(str::trim) {
            Some(number) => number.parse().map(Self).map_err(|_| {
                format!("{text}: a number of packets is a whole number; write \"25 packets\"")
            }),
            None if text.parse::<u64>().is_ok() => {
                Err(format!("{text}: needs a unit; write \"{text} packets\""))
            }
            None => Err(format!(
                "{text}: not a number of packets; write it like \"25 packets\""
            )),
        }
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 packet"),
            number => write!(f, "{number} packets"),
        }
    }
}
