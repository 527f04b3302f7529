//! Losses by the bits that some stacks set in short headers for those on the path.
//!
//! Source: RFC 9506 section 3 (the square bit, Q, and the loss event bit, L);
//! draft-ferrieuxhamchaoui-quic-lossbits-03 (where QUIC has them, and how ends agree on them). A
//! sender changes Q every [`PERIOD`] packets: what is missing of a period was lost before the place
//! of capture. It sets L on as many packets as it took for lost: that is what was lost on the whole
//! path. Ends that did not agree on these bits encrypt them; then Q changes on every other packet.

use bentpipe_wire::quic::End;
use serde::Serialize;

use crate::connection::{Connection, Nanos, Packet, Vantage};

use super::share;

/// Packets between two changes of Q.
const PERIOD: u64 = 64;
/// Fewer packets than four periods are not told from chance.
const ENOUGH: usize = 256;
/// Encrypted bits change on every other packet, a square on one of 64, and some more where packets
/// are reordered: one in this many is between.
const SELDOM: usize = 16;
/// Fewer packets than this of another value amid a period came out of order.
const REORDERED: u64 = 8;
const SQUARE: u8 = 0x10;
const LOSS: u8 = 0x08;

/// The losses that the bits of an end's short headers tell of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LossBits {
    /// Packets in whole periods of Q.
    pub square_packets: u64,
    /// The number of further packets that its sender sent in these periods: they were lost before
    /// they came here.
    pub upstream_lost_packets: u64,
    /// `upstream_lost_packets` / all packets of these periods.
    pub upstream_lost_share: f64,
    /// Packets with L: one for each that the sender declared lost, on the whole path.
    pub reported_lost_packets: u64,
    /// `reported_lost_packets` / packets with a short header.
    pub reported_lost_share: f64,
}

impl LossBits {
    /// The loss bits of an end. None if it shows none.
    pub(super) fn of(connection: &Connection, end: End) -> Option<Self> {
        let packets = connection.packets.iter();
        let own = packets.filter(|it| it.sender == end && !it.copy && it.spin().is_some());
        // Where both sides were captured, the receiver's: there Q counts the losses of the path.
        let mut own: Vec<_> = own
            .filter_map(|it| Some((arrival(connection, it)?, it.first_byte)))
            .collect();
        own.sort_by_key(|(time, _)| *time);
        let bits: Vec<u8> = own.into_iter().map(|(_, bits)| bits).collect();
        if !is_square(&bits) {
            return None;
        }
        let mut periods = whole_periods(&bits);
        periods.retain(|period| *period <= PERIOD); // in a longer one, the sender began anew
        let square_packets: u64 = periods.iter().sum();
        let sent = periods.len() as u64 * PERIOD;
        let upstream_lost_packets = sent - square_packets;
        let reported_lost_packets = bits.iter().filter(|it| **it & LOSS != 0).count() as u64;
        Some(Self {
            square_packets,
            upstream_lost_packets,
            upstream_lost_share: share(upstream_lost_packets, sent),
            reported_lost_packets,
            reported_lost_share: share(reported_lost_packets, bits.len() as u64),
        })
    }
}

/// Whether the square bit of these packets is one: it changes seldom.
fn is_square(first_bytes: &[u8]) -> bool {
    let pairs = first_bytes.windows(2);
    let changes = pairs.filter(|it| (it[0] ^ it[1]) & SQUARE != 0).count();
    first_bytes.len() >= ENOUGH && (1..=first_bytes.len() / SELDOM).contains(&changes)
}

/// When a packet passed where losses are counted: at the receiver's side, if that was captured.
fn arrival(connection: &Connection, packet: &Packet) -> Option<Nanos> {
    match connection.vantage {
        Vantage::Both => packet.received(),
        Vantage::At(_) | Vantage::Between => Some(packet.time()),
    }
}

/// How many packets came of each period, without the first and the last one, which may be cut.
fn whole_periods(first_bytes: &[u8]) -> Vec<u64> {
    let mut periods: Vec<u64> = Vec::new();
    let (mut square, mut early) = (None, 0);
    for run in first_bytes.chunk_by(|one, other| (one ^ other) & SQUARE == 0) {
        let length = run.len() as u64;
        let value = run[0] & SQUARE;
        let is_of_another = square.is_some_and(|it| it != value) && length < REORDERED;
        let count = periods.len();
        let has_begun = |periods: &[u64]| periods[count - 1] < PERIOD / 2;
        match count {
            // Overtaken packets belong to the period before, those that overtook to the next.
            2.. if is_of_another && has_begun(&periods) => periods[count - 2] += length,
            1.. if is_of_another => early += length,
            1.. if square == Some(value) => periods[count - 1] += length,
            _ => {
                periods.push(length + std::mem::take(&mut early));
                square = Some(value);
            }
        }
    }
    periods.pop();
    periods.into_iter().skip(1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of periods of [`PERIOD`], of which `lost` says by number which did not come.
    fn square(packets: u64, lost: impl Fn(u64) -> bool) -> Vec<u8> {
        let all = (0..packets).filter(|number| !lost(*number));
        let bit = |number: u64| 0x40 | if number / PERIOD % 2 == 1 { SQUARE } else { 0 };
        all.map(bit).collect()
    }

    #[test]
    fn what_a_period_lacks_was_lost() {
        assert_eq!(whole_periods(&square(5 * PERIOD, |_| false)), [PERIOD; 3]);
        let lossy = square(5 * PERIOD, |number| number % 10 == 3);
        assert_eq!(whole_periods(&lossy).iter().sum::<u64>(), 3 * PERIOD - 19);
    }

    #[test]
    fn packets_that_come_late_count_in_their_period() {
        let mut bits = square(5 * PERIOD, |_| false);
        bits.swap(126, 129); // of the second and third
        bits.swap(191, 193);
        assert_eq!(whole_periods(&bits), [PERIOD; 3]);
    }

    #[test]
    fn encrypted_bits_are_no_square() {
        // A change every fourth packet; none; and too few packets.
        let often: Vec<u8> = (0_u16..400)
            .map(|at| if at / 4 % 2 == 0 { SQUARE } else { 0 })
            .collect();
        assert!(!is_square(&often));
        assert!(!is_square(&[SQUARE; 400]));
        assert!(!is_square(&square(255, |_| false)));
        assert!(is_square(&square(400, |number| number % 3 == 0)));
    }
}
