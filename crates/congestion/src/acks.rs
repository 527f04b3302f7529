//! The packet events that a controller receives.

use bentpipe_units::{Span, Time};

/// A receiver may wait so long with an ACK, unless it has said otherwise (RFC 9000, section 18.2).
pub(crate) const MAX_ACK_DELAY: Span = Span::from_millis(25);

/// A packet that has been acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckedPacket {
    /// When it was sent.
    pub sent: Time,
    /// Its size.
    pub bytes: u64,
    /// Bytes that had been delivered when it was sent.
    pub delivered_before: u64,
    /// Bytes that had been sent before it.
    pub sent_before: u64,
}

/// A sample of the delivery rate: over the flight of one packet, the bytes that were acknowledged
/// between its departure and its ACK.
///
/// Source: draft-ietf-ccwg-bbr, section 4.1 (delivery rate samples). The interval is the longer one
/// of the times in which these bytes were sent and in which they were acknowledged, so that ACKs
/// that come compressed don't pretend a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// The bytes delivered.
    pub bytes: u64,
    /// In which time.
    pub interval: Span,
    /// The sender ran dry meanwhile: the path may carry more.
    pub limited: bool,
}

impl RateSample {
    /// Bytes per second.
    #[must_use]
    pub fn per_second(&self) -> u64 {
        per_second(self.bytes, self.interval)
    }
}

/// `bytes` in `span` as bytes per second; the largest number if the span is zero.
pub(crate) fn per_second(bytes: u64, span: Span) -> u64 {
    let nanos = u128::from(span.as_nanos());
    if nanos == 0 {
        return u64::MAX;
    }
    u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

/// The packets that one ACK has acknowledged for the first time: at least one.
#[derive(Debug, Clone, Copy)]
pub struct Acks<'a> {
    /// When it came.
    pub now: Time,
    /// The packets, in the order in which they were sent.
    pub packets: &'a [AckedPacket],
    /// Their bytes.
    pub bytes: u64,
    /// The part of these bytes that may grow the window: of packets sent after the last congestion
    /// event, and none if the sender was limited by something else than the window (RFC 9002,
    /// section 7.8).
    pub credit: u64,
    /// The sample of the round-trip time, ACK delay included; none if a packet sent later was
    /// acknowledged before.
    pub rtt: Option<Span>,
    /// The sample of the delivery rate; none before a round trip has been measured.
    pub rate: Option<RateSample>,
    /// The first packet sent after the last such ACK is among them: a round trip has passed.
    pub new_round: bool,
}

impl Acks<'_> {
    /// The packet that was sent last.
    #[must_use]
    pub fn newest(&self) -> &AckedPacket {
        self.packets
            .last()
            .expect("an ACK without news is not reported")
    }
}

/// A packet that has been declared lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostPacket {
    /// When that was noticed.
    pub now: Time,
    /// When it was sent.
    pub sent: Time,
    /// Its size.
    pub bytes: u64,
    /// Bytes that had been sent before it.
    pub sent_before: u64,
}

/// A congestion event: packets were lost, or marked by ECN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongestionEvent {
    /// When that was noticed.
    pub now: Time,
    /// When the last of these packets was sent.
    pub sent: Time,
    /// The bytes lost; 0 if they were marked.
    pub lost: u64,
    /// They were marked (RFC 9002, section 7.1).
    pub ecn: bool,
    /// Nothing came through for very long (RFC 9002, section 7.6).
    pub persistent: bool,
}
