//! The path beside its losses: its delay, and the rate that it carried.
//!
//! Delays of one direction mean nothing where two clocks differ; half of the least round trip, the
//! sum of the least delays of both directions, does not depend on them. The rate is what arrived in
//! the fullest second: the path has at least that.

use std::collections::BTreeMap;

use bentpipe_wire::quic::End;
use serde::Serialize;

use crate::connection::{Connection, Vantage};
use crate::durations::seconds;

const SECOND: i128 = 1_000_000_000;

/// The measures of a path in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct MeasuredPath {
    /// Half of the least round trip. None if no packet arrived in one of the directions.
    pub delay_s: Option<f64>,
    /// Bits of IP packets that arrived in the fullest second, or in all of a shorter time.
    pub rate_bps: Option<u64>,
}

impl MeasuredPath {
    /// The measures of the path by the packets of `sender`.
    #[must_use]
    pub fn of(connections: &[Connection], sender: End) -> Self {
        let both = || connections.iter().filter(|it| it.vantage == Vantage::Both);
        let round_trips = both().filter_map(|it| {
            let [forth, back] = [End::Client, End::Server].map(|end| least_delay(it, end));
            Some(forth? + back?)
        });
        let mut arrivals = BTreeMap::<i128, u64>::new();
        for connection in both() {
            for packet in connection.packets.iter().filter(|it| it.sender == sender) {
                if let (Some(received), Some(bytes)) = (packet.received(), packet.ip_size) {
                    let at = i128::from(connection.start) + i128::from(received);
                    *arrivals.entry(at).or_default() += u64::from(bytes);
                }
            }
        }
        Self {
            delay_s: round_trips.min().map(|it| seconds(it) / 2.0),
            rate_bps: fullest_second(&arrivals).map(|bytes| bytes * 8),
        }
    }
}

fn least_delay(connection: &Connection, sender: End) -> Option<i64> {
    let own = connection.packets.iter().filter(|it| it.sender == sender);
    own.filter_map(|it| Some(it.received()? - it.sent()?)).min()
}

/// The most bytes that arrived within a second.
fn fullest_second(arrivals: &BTreeMap<i128, u64>) -> Option<u64> {
    let mut window = arrivals.iter();
    let mut oldest = window.next();
    let (mut sum, mut most) = (0, None);
    for (at, bytes) in arrivals {
        sum += bytes;
        while let Some((first, old)) = oldest.filter(|(first, _)| **first <= at - SECOND) {
            debug_assert!(first < at);
            sum -= old;
            oldest = window.next();
        }
        most = most.max(Some(sum));
    }
    most
}
