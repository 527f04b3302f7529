//! The measurements of a connection, out of its packets and the ledgers of its senders.
//!
//! Times are read at the client; those of an upload's files at the server, where they arrive. A
//! capture of the server's side alone has no such times; there, passing at the server stands for
//! it: what is measured then lacks the two ways in between. [`crate::connection::Vantage`] says
//! which it is.
//!
//! Definitions: completion and goodput are those of the papers on QUIC over satellites (8 · bytes /
//! time from the first packet with data to the last); RTT samples and bytes in flight those of RFC
//! 9002, as the ledger keeps them.
//!
//! Departures: an endpoint's own report may differ. It knows of its handshake, its first and its
//! last byte when its stack hands them over: a byte behind a gap later than it arrived here, and
//! the end of the handshake at once, while here it is seen by what the client sends next.

mod arrivals;
mod ecn;
mod milestones;
mod one_rtt;
mod one_way;
mod reply;
#[cfg(test)]
mod tests;
mod together;

use serde::Serialize;

use crate::DecodingGap;
use crate::connection::{Connection, Nanos};
use crate::durations::{seconds, spread_ms};
use crate::ledger::LedgerEntry;
use crate::link_facts::LinkFacts;
use bentpipe_wire::quic::End;

pub use arrivals::arrivals;
pub use ecn::EcnUse;
pub use milestones::Milestones;
pub use one_rtt::one_rtt_span;
pub use one_way::OneWay;

use one_way::Transfer;

pub use together::Measured;

/// Measurements of a connection, or of several together. None: cannot be measured from where it was
/// captured, or did not happen. What needs the frames of all packets is None where a
/// [gap](DecodingGap::misleads) would mislead.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metrics {
    /// From the client's first packet to the end of its handshake, seconds.
    pub handshake_s: Option<f64>,
    /// From the client's first packet to the first packet with data of the reply, seconds. None of
    /// an upload, whose answer has no data.
    pub ttfb_s: Option<f64>,
    /// From the client's first packet to the last byte of the reply that had been missing, seconds.
    /// Only if the reply is complete. Of an upload, to the end of the last answer.
    pub completion_s: Option<f64>,
    /// From the first packet with data of the reply, or of an upload's files, to the last byte,
    /// seconds.
    pub transfer_s: Option<f64>,
    /// From the client's first packet until the first 1, 2, 5, 10, 20, 50, 100, 200, 500 and 1000
    /// million bytes of the reply, or of an upload, were there, none of them missing, as far as
    /// they were, seconds. Empty where there are several streams or connections.
    pub first_mb_s: Vec<f64>,
    /// The times at which bytes of the reply, or of an upload, could be read, none before them in
    /// their stream missing, in nanoseconds since the client's first packet, each with their
    /// number, in order of time.
    #[serde(skip)]
    pub in_order: Vec<(Nanos, u64)>,
    /// 8 · `stream_bytes` (of an upload, bytes of the files) / `transfer_s`. None also where it
    /// exceeds the path's rate: all fit into one flight, whose first packet's own time on the path
    /// is not in `transfer_s`.
    pub goodput_bps: Option<f64>,
    /// Distinct bytes of the reply that arrived. None if it could not be decrypted, here and below.
    pub stream_bytes: Option<u64>,
    /// Distinct bytes of the client's streams that were sent and not lost.
    pub upload_bytes: Option<u64>,
    /// From the server to the client.
    pub forward: OneWay,
    /// From the client to the server.
    #[serde(rename = "return")]
    pub back: OneWay,
    /// The least RTT sample of the end that sends the files or, where that is not known, sent more
    /// data; the next two are of the same end.
    pub rtt_min_ms: Option<f64>,
    /// The middle one.
    pub rtt_median_ms: Option<f64>,
    /// The longest.
    pub rtt_max_ms: Option<f64>,
    /// The most bytes that this end had in flight.
    pub in_flight_max_bytes: Option<u64>,
}

impl Metrics {
    /// Measures `connection`, whose [ledger](Connection::ledger) is `entries`.
    #[must_use]
    pub fn of(connection: &Connection, entries: &[LedgerEntry], facts: &LinkFacts) -> Self {
        let only = Measured {
            connection,
            entries,
        };
        Self::of_all(&[only], facts)
    }

    /// Measures connections together, as they carry the files of one transfer: bytes and packets
    /// are sums, times count from the first packet of the first connection, the handshake is the
    /// first that was complete, the first byte the earliest and the last byte the latest of any,
    /// and the bytes in flight are the most at one time.
    #[must_use]
    pub fn of_all(all: &[Measured<'_>], facts: &LinkFacts) -> Self {
        let from = facts.files_sender();
        let all = together::on_one_axis(all);
        let ([upload, reply], times) = together::replies(&all, from);
        let transfer = Transfer::of(&all, &times, facts);
        let [forward, back] = OneWay::both(&all, transfer);
        let (mut rtt, in_flight_max_bytes) = together::of_senders(&all, facts);
        let [rtt_min_ms, rtt_median_ms, rtt_max_ms] = spread_ms(&mut rtt);
        let since_start = |time: Option<Nanos>| Some(seconds(time? - times.start?));
        let transfer_s = times.transfer().map(|(first, last)| seconds(last - first));
        let carried = [&upload, &reply][from as usize];
        let in_order = times.start.map(|start| carried.since(start));
        let marks = carried.marks.iter().map(|at| since_start(Some(*at)));
        let (files, rate_bps) = match from {
            End::Server => (reply.bytes, facts.forward_rate_bps),
            // The requests are no part of the files.
            End::Client => {
                let size = facts.size_bytes.unwrap_or(u64::MAX);
                (upload.bytes.min(size), facts.return_rate_bps)
            }
        };
        let metrics = Self {
            handshake_s: since_start(times.handshake_complete),
            ttfb_s: since_start(times.first_byte).filter(|_| from == End::Server),
            completion_s: since_start(times.complete),
            transfer_s,
            first_mb_s: marks.map_while(|it| it).collect(),
            in_order: in_order.unwrap_or_default(),
            goodput_bps: goodput(files, transfer_s, rate_bps),
            stream_bytes: forward.stream_bytes.map(|_| reply.bytes),
            upload_bytes: back.stream_bytes.map(|_| upload.bytes),
            forward,
            back,
            rtt_min_ms,
            rtt_median_ms,
            rtt_max_ms,
            in_flight_max_bytes,
        };
        if DecodingGap::of(all.iter().map(|(_, it)| it.connection)).misleads() {
            return metrics.without_content();
        }
        metrics
    }

    /// Without what needs the frames of all packets.
    fn without_content(self) -> Self {
        Self {
            first_mb_s: Vec::new(),
            in_order: Vec::new(),
            goodput_bps: None,
            stream_bytes: None,
            upload_bytes: None,
            forward: self.forward.without_content(),
            back: self.back.without_content(),
            rtt_min_ms: None,
            rtt_median_ms: None,
            rtt_max_ms: None,
            in_flight_max_bytes: None,
            ..self
        }
    }
}

fn goodput(bytes: u64, transfer_s: Option<f64>, rate_bps: Option<u64>) -> Option<f64> {
    let goodput = float(8 * bytes) / transfer_s.filter(|transfer| *transfer > 0.0)?;
    Some(goodput).filter(|goodput| rate_bps.is_none_or(|rate| *goodput <= float(rate)))
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
