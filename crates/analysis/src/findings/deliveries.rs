//! How far the data had come over time: distinct stream bytes, whatever their order.
//!
//! The offset–time plot of Endres 2022 (section 5.6.1) without what was sent again. Times are those
//! of arrival; where only the sender's side was captured, those of the first ACK, half a round trip
//! later.

use std::collections::HashMap;

use crate::connection::{Frame, Nanos, Vantage};
use crate::intervals::Intervals;
use bentpipe_wire::quic::End;

use super::span::{Span, rate_of};
use super::view::View;

/// Distinct bytes that had come by a time: after each arrival, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Deliveries {
    steps: Vec<(Nanos, u64)>,
}

/// The deliveries of what `sender` sent.
pub(super) fn of(view: &View<'_>, sender: End) -> Deliveries {
    let by_ack = view.connection.vantage == Vantage::At(sender);
    let own = view
        .packets()
        .filter(|(packet, entry)| packet.sender == sender && entry.stream_bytes > 0);
    let mut arrived: Vec<_> = own
        .filter_map(|(packet, entry)| {
            let time = if by_ack {
                entry.acked.nanos()
            } else {
                packet.received()
            };
            Some((time?, packet))
        })
        .collect();
    arrived.sort_by_key(|(time, _)| *time);
    let mut streams: HashMap<u64, Intervals> = HashMap::new();
    let (mut steps, mut sum) = (Vec::with_capacity(arrived.len()), 0);
    for (time, packet) in arrived {
        for frame in view.connection.frames(packet) {
            if let Frame::Stream {
                id, offset, length, ..
            } = frame
            {
                let range = *offset..offset.saturating_add(u64::from(*length));
                sum += streams.entry(*id).or_default().add(range);
            }
        }
        steps.push((time, sum));
    }
    steps.dedup_by_key(|(_, sum)| *sum);
    Deliveries { steps }
}

impl Deliveries {
    /// All distinct bytes that came.
    pub(super) fn bytes(&self) -> u64 {
        self.steps.last().map_or(0, |(_, sum)| *sum)
    }

    /// From the first byte to the last.
    pub(super) fn span(&self) -> Option<Span> {
        let (first, last) = (self.steps.first()?, self.steps.last()?);
        Some(Span {
            from: first.0,
            until: last.0,
        })
    }

    /// The number of distinct bytes that had come by `time`.
    pub(super) fn by(&self, time: Nanos) -> u64 {
        let after = self.steps.partition_point(|(at, _)| *at <= time);
        after.checked_sub(1).map_or(0, |last| self.steps[last].1)
    }

    /// The time at which `bytes` distinct bytes had come.
    pub(super) fn when(&self, bytes: u64) -> Option<Nanos> {
        let at = self.steps.partition_point(|(_, sum)| *sum < bytes);
        self.steps.get(at).map(|(time, _)| *time)
    }

    /// Mean bit/s over a span.
    pub(super) fn rate(&self, span: Span) -> f64 {
        let bytes = self.by(span.until) - self.by(span.from);
        rate_of(bytes, span.length())
    }

    /// The times at which something new came.
    pub(super) fn times(&self) -> impl Iterator<Item = Nanos> {
        self.steps.iter().map(|(time, _)| *time)
    }
}
