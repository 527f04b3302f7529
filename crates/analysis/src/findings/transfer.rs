//! The transfer of a connection: the packets that carry its data, and the facts that rules ask for.

use crate::DecodingGap;
use crate::connection::{Fate, Frame, Nanos, Packet, Vantage};
use crate::ledger::LedgerEntry;
use crate::passive::handshake_rtt;
use bentpipe_wire::quic::{End, Space};

use super::span::{Span, at_rate};
use super::transfer_bounds as bounds;
use super::view::View;

/// The fact that a rule lacks to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing(pub String);

impl Missing {
    pub(super) fn because<T>(what: impl Into<String>) -> Result<T, Self> {
        Err(Self(what.into()))
    }
}

/// The transfer of a connection, as far as its capture has it.
pub(super) struct Transfer<'a> {
    pub view: &'a View<'a>,
    /// The part of the connection that could not be decoded.
    pub gap: DecodingGap,
    /// The data sender: the end that sends the files, if that is known, else the one that sent more
    /// stream bytes.
    pub sender: End,
    /// Its packets with stream data, as they were sent.
    pub data: Vec<usize>,
    /// From the first of these on, its packets that ask for an ACK in the application's packet
    /// number space: what congestion control is about. Of a connection without secrets: all 1-RTT
    /// packets of the sender.
    pub in_flight: Vec<usize>,
    /// From its first packet with stream data to its last one with data never sent before; to the
    /// end of the capture, if that is not the end of the data.
    pub sending: Span,
    /// Whether all data were sent: the ends of their streams are in the capture, and no less than
    /// was asked for.
    pub is_whole: bool,
    /// The smallest RTT sample; where there is none, the path's.
    pub rtt: Option<Nanos>,
    /// The size of a full-sized packet of the sender's data, without UDP and IP.
    pub full_size: u32,
}

impl<'a> Transfer<'a> {
    pub(super) fn of(view: &'a View<'a>) -> Self {
        let sender = view.link.data_sender(view.connection, view.ledger);
        let packets = &view.connection.packets;
        let data: Vec<usize> = (0..packets.len())
            .filter(|at| packets[*at].sender == sender && !packets[*at].copy)
            .filter(|at| view.ledger[*at].stream_bytes > 0)
            .collect();
        let is_whole = bounds::is_whole(view, sender, &data);
        let gap = DecodingGap::of([view.connection]);
        let (in_flight, sending) = if gap.is_sealed() {
            let all = one_rtt(view, sender);
            let sending = bounds::passing(view, &all);
            (all, sending)
        } else {
            let sending = bounds::sending(view, &data, is_whole);
            (in_flight(view, sender, &data), sending)
        };
        Self {
            gap,
            sending,
            is_whole,
            in_flight,
            rtt: smallest_rtt(view),
            full_size: full_size(view, &data),
            view,
            sender,
            data,
        }
    }

    /// Whether packets were captured where the data sender is.
    pub(super) fn sees_sender(&self) -> bool {
        match self.view.connection.vantage {
            Vantage::Both => true,
            Vantage::At(side) => side == self.sender,
            Vantage::Between => false,
        }
    }

    /// Asks for a connection of which no part is missing that could mislead. Of one that is sealed
    /// as a whole, each rule says what it lacks.
    pub(super) fn needs_most_packets(&self) -> Result<(), Missing> {
        if self.gap.misleads() && !self.gap.is_total() {
            return Missing::because(self.gap.to_string());
        }
        if self.view.connection.has_several_paths() {
            return Missing::because("its packets took several paths, and rules are about one");
        }
        Ok(())
    }

    /// Asks for stream data.
    pub(super) fn needs_data(&self) -> Result<(), Missing> {
        if self.data.is_empty() {
            let packets = &self.view.connection.packets;
            return Missing::because(if packets.iter().any(|it| !it.decoded) {
                "the packets could not be decrypted (hint: --keylog)"
            } else {
                "no stream data were sent"
            });
        }
        Ok(())
    }

    /// Asks for packets with data: those with stream data or, without secrets, 1-RTT packets.
    pub(super) fn needs_data_packets(&self) -> Result<&[usize], Missing> {
        if self.gap.is_sealed() && !self.in_flight.is_empty() {
            return Ok(&self.in_flight);
        }
        self.needs_data().map(|()| &self.data[..])
    }

    /// Asks for stream data, and a capture where they were sent.
    pub(super) fn needs_sender_side(&self) -> Result<(), Missing> {
        self.needs_data()?;
        self.needs_capture_at_sender()
    }

    /// The same of packets with data, of which no more need be known.
    pub(super) fn needs_data_packets_at_sender(&self) -> Result<(), Missing> {
        self.needs_data_packets()?;
        self.needs_capture_at_sender()
    }

    fn needs_capture_at_sender(&self) -> Result<(), Missing> {
        if self.sees_sender() {
            return Ok(());
        }
        let end = self.sender.name();
        Missing::because(format!(
            "the side of the {end}, which sent the data, was not captured"
        ))
    }

    /// The smallest RTT.
    pub(super) fn needs_rtt(&self) -> Result<Nanos, Missing> {
        let rtt = self.rtt.filter(|rtt| *rtt > 0);
        rtt.ok_or_else(|| Missing("no RTT was measured, and the path's is not known".to_owned()))
    }

    /// Bit/s of the bottleneck in the direction of the data.
    pub(super) fn needs_rate(&self) -> Result<u64, Missing> {
        let rate = self.rate_from(self.sender);
        let rate = rate.filter(|rate| *rate > 0);
        rate.ok_or_else(|| {
            let direction = direction(self.sender);
            Missing(format!(
                "the rate of the {direction} link is not known (hint: --link)"
            ))
        })
    }

    /// Bit/s of the bottleneck behind an end.
    pub(super) fn rate_from(&self, end: End) -> Option<u64> {
        match end {
            End::Client => self.view.link.return_rate_bps,
            End::Server => self.view.link.forward_rate_bps,
        }
    }

    /// Whether a queue behind an end marks packets of ECN-capable senders.
    pub(super) fn marks_from(&self, end: End) -> Option<bool> {
        match end {
            End::Client => self.view.link.return_marks,
            End::Server => self.view.link.forward_marks,
        }
    }

    /// Bytes of IP packets that fill the path without a queue.
    pub(super) fn needs_bdp(&self) -> Result<u64, Missing> {
        let (rate, rtt) = (self.needs_rate()?, self.needs_rtt()?);
        Ok(at_rate(rate, rtt))
    }

    pub(super) fn packet(&self, at: usize) -> (&Packet, &LedgerEntry) {
        (&self.view.connection.packets[at], &self.view.ledger[at])
    }

    /// The packets of the data sender, as they were sent.
    pub(super) fn sent(&self) -> impl Iterator<Item = (&Packet, &LedgerEntry)> {
        let all = self.view.packets();
        all.filter(|(packet, _)| packet.sender == self.sender)
    }

    /// The packets of the data sender that count in [`Transfer::in_flight`].
    pub(super) fn sent_in_flight(&self) -> impl Iterator<Item = (&Packet, &LedgerEntry)> {
        self.in_flight.iter().map(|at| self.packet(*at))
    }

    /// RTT samples that the data sender took, with their times.
    pub(super) fn rtt_samples(&self) -> impl Iterator<Item = (Nanos, Nanos)> {
        let heard = self
            .view
            .packets()
            .filter(|(packet, _)| packet.sender != self.sender);
        heard.filter_map(|(packet, entry)| Some((packet.received()?, entry.rtt.nanos()?)))
    }

    /// How often in a span the congestion window that the sender itself logged fell by at least
    /// `percent` of what it was. None: it logged none.
    pub(super) fn logged_reductions(&self, span: Span, percent: u64) -> Option<u64> {
        let log = self.view.windows[self.sender as usize]?;
        let fell = log.windows(2).filter(|pair| {
            let [(_, before), (time, after)] = [pair[0], pair[1]];
            let least = before.saturating_sub(before / 100 * percent);
            span.has(time) && after < before && after <= least
        });
        Some(fell.count() as u64)
    }

    /// The largest congestion window in a span that the sender itself logged.
    pub(super) fn logged_window(&self, span: Span) -> Option<u64> {
        let log = self.view.windows[self.sender as usize]?;
        let before = log.partition_point(|(time, _)| *time <= span.from);
        let within = log[before.saturating_sub(1)..].iter();
        let within = within.take_while(|(time, _)| *time < span.until);
        within.map(|(_, bytes)| *bytes).max()
    }

    /// Bytes in flight, as bytes of IP packets: UDP and IP headers count on the link.
    pub(super) fn on_link(&self, in_flight: u64) -> u64 {
        let full = u64::from(self.full_size.max(1));
        in_flight + in_flight.div_ceil(full) * self.headers()
    }

    /// Bytes of UDP and IP headers on each of the sender's packets.
    fn headers(&self) -> u64 {
        let first = self.data.iter().map(|at| self.packet(*at).0);
        let mut alone = first.filter_map(|it| it.ip_size?.checked_sub(it.size));
        // The first packet of a datagram may have others behind it; most have not.
        u64::from(alone.next().unwrap_or(0))
    }

    /// The event that ended the time in which there were data to send, in words.
    pub(super) fn ended(&self) -> &'static str {
        if self.is_whole {
            "the data ended"
        } else {
            "the capture ends"
        }
    }

    /// Whether data never sent before were still to come at `time`.
    pub(super) fn has_more(&self, time: Nanos) -> bool {
        time < self.sending.until
    }
}

/// Whether a packet arrived, if that is known.
pub(super) fn arrived(packet: &Packet, entry: &LedgerEntry) -> Option<bool> {
    match packet.fate {
        Fate::Delivered => Some(true),
        Fate::QueueDrop | Fate::Loss | Fate::NotReceived => Some(false),
        Fate::Unknown if packet.received().is_some() || entry.acked.is_some() => Some(true),
        Fate::Unknown => entry.declared_lost.is_some().then_some(false),
    }
}

/// "forward" or "return": the direction of what an end sends.
pub(super) fn direction(sender: End) -> &'static str {
    match sender {
        End::Client => "return",
        End::Server => "forward",
    }
}

fn in_flight(view: &View<'_>, sender: End, data: &[usize]) -> Vec<usize> {
    let packets = &view.connection.packets;
    let from = data.first().copied().unwrap_or(packets.len());
    let counts = |at: &usize| {
        let packet = &packets[*at];
        packet.sender == sender
            && !packet.copy
            && packet.space() == Some(Space::Application)
            && view
                .connection
                .frames(packet)
                .iter()
                .any(Frame::is_ack_eliciting)
    };
    (from..packets.len()).filter(counts).collect()
}

/// All 1-RTT packets of a sender.
fn one_rtt(view: &View<'_>, sender: End) -> Vec<usize> {
    let packets = view.connection.packets.iter().enumerate();
    let own = packets.filter(|(_, it)| it.sender == sender && !it.copy && it.spin().is_some());
    own.map(|(at, _)| at).collect()
}

fn smallest_rtt(view: &View<'_>) -> Option<Nanos> {
    // Clocks of two captures that differ may give samples below 0.
    let samples = view.packets().filter_map(|(_, it)| it.rtt.nanos());
    let measured = samples.filter(|rtt| *rtt > 0).min();
    let measured = measured.or_else(|| handshake_rtt(view.connection).filter(|rtt| *rtt > 0));
    measured.or_else(|| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a fact with fractions of ms"
        )]
        let nanos = |ms: f64| (ms * 1e6) as Nanos;
        view.link.rtt_ms.map(nanos)
    })
}

/// The size that most bytes of data were sent in; of two, the larger.
fn full_size(view: &View<'_>, data: &[usize]) -> u32 {
    let mut bytes = std::collections::BTreeMap::<u32, u64>::new();
    for at in data {
        let size = view.connection.packets[*at].size;
        *bytes.entry(size).or_default() += u64::from(size);
    }
    let most = bytes.into_iter().max_by_key(|(size, sum)| (*sum, *size));
    most.map_or(0, |(size, _)| size)
}
