//! How much may wait in a queue.

use std::fmt;
use std::str::FromStr;

use bentpipe_units::{Size, Span};

use crate::packets::Packets;

/// The size of a queue: how much may wait. Time and BDP become bytes, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum QueueSize {
    /// `"25 packets"`, whatever their sizes.
    Packets(Packets),
    /// `"36 MB"` of IP packets.
    Bytes(Size),
    /// `"200 ms"`: the bytes that the link sends in this time.
    Time(Span),
    /// `"0.25 BDP"`, in billionths: the bytes that the link sends in this share of the path's
    /// round-trip time without queueing.
    Bdp(u64),
}

pub(crate) const BILLION: u64 = 1_000_000_000;
pub(crate) const EXAMPLES: &str = "\"25 packets\", \"36 MB\", \"200 ms\" or \"1 BDP\"";

impl FromStr for QueueSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(number) = text.strip_suffix("BDP") {
            let wrong = || format!("{text}: not a number of BDP; write it like \"0.25 BDP\"");
            return billionths(number.trim()).map(Self::Bdp).ok_or_else(wrong);
        }
        if text.ends_with("packets") || text.ends_with("packet") {
            return text.parse().map(Self::Packets);
        }
        if text.ends_with('B') {
            return text
                .parse()
                .map(Self::Bytes)
                .map_err(|error| format!("{error}"));
        }
        if text.ends_with('s') && !text.ends_with("/s") {
            return text
                .parse()
                .map(Self::Time)
                .map_err(|error| format!("{error}"));
        }
        Err(format!(
            "{text}: not a queue size; write it like {EXAMPLES}"
        ))
    }
}

/// Reads a decimal number exactly, in billionths.
fn billionths(number: &str) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(BILLION)?
        .checked_add(fraction)
}

impl fmt::Display for QueueSize {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Packets(packets) => packets.fmt(f),
            Self::Bytes(size) => size.fmt(f),
            Self::Time(span) => span.fmt(f),
            Self::Bdp(billionths) => {
                let fraction = format!("{:09}", billionths % BILLION);
                match fraction.trim_end_matches('0') {
                    "" => write!(f, "{} BDP", billionths / BILLION),
                    fraction => write!(f, "{}.{fraction} BDP", billionths / BILLION),
                }
            }
        }
    }
}
