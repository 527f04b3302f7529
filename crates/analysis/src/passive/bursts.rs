//! Bursts of datagrams: what leaves or passes back to back.
//!
//! At the sender's side they are those of the sender; behind a bottleneck, what that has left of
//! them. RFC 9002 section 7.7 would have bursts no larger than the initial window, 10 packets.

use bentpipe_wire::quic::End;
use serde::Serialize;

use crate::connection::{Connection, Nanos};

use super::share;

/// Datagrams that follow each other sooner than this are of one burst: 1 ms, at which 12 Mbit/s put
/// full-sized packets.
const GAP: Nanos = 1_000_000;
/// Larger bursts are long ones.
const LONG: u64 = 10;

/// The bursts of the datagrams of an end (TCP: segments).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bursts {
    /// The number of bursts, those of one datagram included.
    pub bursts: u64,
    /// Datagrams of the longest.
    pub longest_datagrams: u64,
    /// Bytes of its IP packets.
    pub longest_bytes: u64,
    /// The time at which it began, in seconds since the connection's first packet.
    pub longest_at_s: Option<f64>,
    /// Bytes in bursts of more than 10 datagrams / all bytes.
    pub long_share: f64,
}

impl Bursts {
    /// The bursts of an end, where its datagrams were seen first.
    pub(super) fn of(connection: &Connection, end: End) -> Self {
        let packets = connection.packets.iter();
        let own = packets.filter(|it| it.sender == end && !it.copy);
        let datagrams = own.filter_map(|it| Some((it.time(), u64::from(it.ip_size?))));
        let mut datagrams: Vec<(Nanos, u64)> = datagrams.collect();
        datagrams.sort_by_key(|(time, _)| *time);
        let mut bursts = Self::default();
        let (mut all, mut in_long) = (0, 0);
        for burst in datagrams.chunk_by(|one, next| next.0 - one.0 < GAP) {
            let (length, bytes) = (burst.len() as u64, burst.iter().map(|it| it.1).sum());
            bursts.bursts += 1;
            all += bytes;
            in_long += if length > LONG { bytes } else { 0 };
            if length > bursts.longest_datagrams {
                bursts.longest_datagrams = length;
                bursts.longest_bytes = bytes;
                bursts.longest_at_s = Some(crate::durations::seconds(burst[0].0));
            }
        }
        bursts.long_share = share(in_long, all);
        bursts
    }
}
