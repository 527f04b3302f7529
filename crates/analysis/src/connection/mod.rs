//! A connection with all its packets, as both sides saw them.
//!
//! Captures are taken at one or two places. A [`Recorder`] notes what passes at one of them;
//! [`join`] brings two of them together, packet by packet, so that of each packet it is known when
//! it was sent, and when it arrived or that it did not. Everything that is measured, drawn or found
//! starts from here.
//!
//! A capture of one place says nothing of the other: packets of the far end have a time of arrival
//! only, and the fate of packets of the near end is unknown. Where the place lies (at the client,
//! at the server or between) follows from the name of the interface, or from who answers quickly
//! ([`Vantage`]).

mod clock;
mod codepoint;
mod copies;
mod frame;
mod join;
mod matching;
mod observed;
mod order;
mod outliers;
mod recorder;
mod unbegun;
mod vantage;
mod wire_image;

use std::net::SocketAddr;
use std::ops::Range;

use bentpipe_wire::TlsRecords;
use bentpipe_wire::quic::{End, Handshake, InitialCredit, PacketType, Space};

pub use codepoint::Codepoint;
pub use frame::{Frame, Ranges};
pub use join::join;
pub use observed::{Arrival, ObservedConnection, PacketObservation};
pub use recorder::{CaptureInfo, Recorder, Recording, Undecodable};
pub use vantage::Vantage;
pub use wire_image::{LaterAddress, WireImage};

/// Nanoseconds since the first packet of the connection was seen. Below 0: clocks of two captures
/// that differ.
pub type Nanos = i64;

/// A connection and its packets, in the order in which they were sent (where that was not seen: in
/// which they arrived).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Its protocol.
    pub protocol: Protocol,
    /// Addresses of the client and the server, as first seen.
    pub ends: [SocketAddr; 2],
    /// The flow-control credit that the client and the server gave in their transport parameters,
    /// if these were seen.
    pub initial_credit: [Option<InitialCredit>; 2],
    /// The server's part of the handshake, as far as it was seen.
    pub handshake: Handshake,
    /// The wire image, which is visible without secrets.
    pub wire_image: WireImage,
    /// The TLS records in the streams of TCP, if there are any.
    pub tls: Option<TlsRecords>,
    /// The part of a connection of TCP in one of MPTCP; none if it is of its own.
    pub subflow: Option<Subflow>,
    /// The place at which it was captured.
    pub vantage: Vantage,
    /// The time at which its first packet was seen, in nanoseconds since the Unix epoch.
    pub start: u64,
    /// The offset of the clock at the server's side from that at the client's, as far as is
    /// certain: 0 unless packets arrived before they were sent. Times are corrected by it.
    pub clock_ahead: Nanos,
    /// By time.
    pub packets: Vec<Packet>,
    /// The frames of all packets; [`Packet::frames`] says which.
    pub frames: Vec<Frame>,
    /// The ranges of all ACK frames.
    pub ranges: Ranges,
}

/// The transport protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// QUIC of this version.
    Quic(u32),
    /// TCP, whose segments stand for packets: numbers count segments as they were sent,
    /// acknowledged bytes and selective acknowledgements are given as ranges of these numbers, and
    /// the sequence space is stream 0 ([`crate::tcp`]).
    Tcp,
}

/// The role of a connection of TCP in one of MPTCP (RFC 8684), of which it is a subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subflow {
    /// It set up the connection, and no other was seen to carry data.
    Only,
    /// It set up the connection.
    First,
    /// It joined.
    Joined,
}

/// A packet number space: that of QUIC, and the path that it is of. The application has one for
/// each path (draft-ietf-quic-multipath-20), the others belong to the first, 0.
pub type PathSpace = (Space, u32);

/// The type of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A QUIC packet.
    Quic(PacketType),
    /// A TCP segment.
    Tcp,
}

/// The fate of a packet: whether it arrived and, where that is known, why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrived.
    Delivered,
    /// A full queue dropped it.
    QueueDrop,
    /// The link lost it.
    Loss,
    /// It was seen at the sender's side but never at the receiver's; why is not known.
    NotReceived,
    /// Only one side was captured.
    Unknown,
}

impl Fate {
    /// The word of tables, and of the comments on packets in traces.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::QueueDrop => "queue_drop",
            Self::Loss => "loss",
            Self::NotReceived => "not_received",
            Self::Unknown => "unknown",
        }
    }

    /// The fate in the comment on a captured packet, if it is one that traces have.
    #[must_use]
    pub fn from_comment(comment: &[u8]) -> Option<Self> {
        let mut fates = [Self::QueueDrop, Self::Loss].into_iter();
        fates.find(|fate| fate.name().as_bytes() == comment)
    }
}

/// A packet as both sides saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Its sender.
    pub sender: End,
    /// Its type.
    pub kind: Kind,
    /// Its number. None if it could not be decrypted, or has none.
    pub number: Option<u64>,
    /// The identifier of the path whose packet number space that is
    /// (draft-ietf-quic-multipath-20); 0 of the first, and where there is one.
    pub path_id: u32,
    /// Bytes of the packet itself.
    pub size: u32,
    /// The first byte of a QUIC packet as it is on the wire; 0 of TCP.
    pub first_byte: u8,
    /// Bytes of the IP packet that carried it; None if an earlier packet of the same datagram has
    /// them.
    pub ip_size: Option<u32>,
    /// The times at which it was seen at the client's and at the server's side.
    pub seen: [Option<Nanos>; 2],
    /// Its ECN codepoint when it was seen there.
    pub ecn: [Option<Codepoint>; 2],
    /// Its fate.
    pub fate: Fate,
    /// Whether it had been seen before at the same place: the network doubled it, it was captured
    /// twice, or its sender repeated it as it was, as it may a `CONNECTION_CLOSE` (RFC 9000 section
    /// 10.2.1).
    pub copy: bool,
    /// Whether its frames are known.
    pub decoded: bool,
    /// Its frames, in [`Connection::frames`].
    pub frames: Range<u32>,
}

impl Packet {
    /// Its packet number space. TCP has just one.
    #[must_use]
    pub fn space(&self) -> Option<Space> {
        match self.kind {
            Kind::Quic(kind) => kind.space(),
            Kind::Tcp => Some(Space::Application),
        }
    }

    /// The packet number space that its number is of.
    #[must_use]
    pub fn path_space(&self) -> Option<PathSpace> {
        Some((self.space()?, self.path_id))
    }

    /// The packet number space of those that an ACK in it is about, whose path is `path_id` if it
    /// is a `PATH_ACK`. An ACK is about the first path, whichever it came on
    /// (draft-ietf-quic-multipath-20).
    #[must_use]
    pub fn acknowledged_space(&self, path_id: Option<u32>) -> Option<PathSpace> {
        Some((self.space()?, path_id.unwrap_or(0)))
    }

    /// The time at which it left its sender.
    #[must_use]
    pub fn sent(&self) -> Option<Nanos> {
        self.seen[self.sender as usize]
    }

    /// The time at which it reached its receiver.
    #[must_use]
    pub fn received(&self) -> Option<Nanos> {
        self.seen[self.sender.other() as usize]
    }

    /// The ECN codepoint with which it left its sender.
    #[must_use]
    pub fn sent_ecn(&self) -> Option<Codepoint> {
        self.ecn[self.sender as usize]
    }

    /// The ECN codepoint with which it reached its receiver.
    #[must_use]
    pub fn received_ecn(&self) -> Option<Codepoint> {
        self.ecn[self.sender.other() as usize]
    }

    /// The time at which it was sent or, where that was not seen, at which it arrived.
    #[must_use]
    pub fn time(&self) -> Nanos {
        let time = self.sent().or(self.received());
        time.expect("a packet was seen at one side at least")
    }
}

impl Connection {
    /// Whether its packets, or those of the connection that it is a subflow of, took more than one
    /// path, at once (draft-ietf-quic-multipath-20, RFC 8684) or one after the other: an end went
    /// to another IP address (RFC 9000 section 9). Another port alone is a NAT's.
    #[must_use]
    pub fn has_several_paths(&self) -> bool {
        let is_one_of_several = self.subflow.is_some_and(|it| it != Subflow::Only);
        let is_elsewhere = |it: &LaterAddress| it.address.ip() != self.ends[it.end as usize].ip();
        is_one_of_several
            || self.wire_image.later_addresses.iter().any(is_elsewhere)
            || self.packets.iter().any(|it| it.path_id > 0)
    }

    /// The frames of a packet.
    #[must_use]
    pub fn frames(&self, packet: &Packet) -> &[Frame] {
        &self.frames[packet.frames.start as usize..packet.frames.end as usize]
    }

    /// Whether a packet asks for an acknowledgement. Of TCP segments, those do that take sequence
    /// space.
    #[must_use]
    pub fn is_ack_eliciting(&self, packet: &Packet) -> bool {
        let mut frames = self.frames(packet).iter();
        match self.protocol {
            Protocol::Quic(_) => frames.any(Frame::is_ack_eliciting),
            Protocol::Tcp => frames.any(|it| matches!(it.name(), "STREAM" | "CRYPTO" | "SYN")),
        }
    }

    /// The ranges of an ACK frame, the highest first.
    #[must_use]
    pub fn ranges(&self, ranges: &Range<u32>) -> &[(u64, u64)] {
        &self.ranges[ranges.start as usize..ranges.end as usize]
    }
    /// The time at which a packet passed at `place`; at the other side, if only that was captured.
    pub(crate) fn seen_at(&self, packet: &Packet, place: End) -> Option<Nanos> {
        let place = match self.vantage {
            Vantage::At(end) => end,
            Vantage::Both | Vantage::Between => place,
        };
        packet.seen[place as usize]
    }

    /// The end that sent more bytes of IP packets.
    pub(crate) fn busier_end(&self) -> End {
        let mut bytes = [0_u64; 2];
        for packet in self.packets.iter().filter(|it| !it.copy) {
            bytes[packet.sender as usize] += u64::from(packet.ip_size.unwrap_or(0));
        }
        if bytes[End::Client as usize] > bytes[End::Server as usize] {
            End::Client
        } else {
            End::Server
        }
    }
}
