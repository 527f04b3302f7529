//! A connection and its packets as one place saw them.

use std::net::SocketAddr;
use std::ops::Range;

use bentpipe_wire::TlsRecords;
use bentpipe_wire::quic::{End, Handshake, Identity, InitialCredit};

use super::frame::{Frame, Ranges};
use super::wire_image::WireImage;
use super::{Codepoint, Fate, Kind, Nanos, Packet, Protocol, Subflow};
use crate::optional::Optional;

/// The observation of a packet at one place.
#[derive(Debug, Clone)]
pub struct PacketObservation {
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// The captured packet that carried it, counted from 1 within its file.
    pub frame: u32,
    /// The same at every place, and of no other packet.
    pub identity: Identity,
    /// Its sender.
    pub sender: End,
    /// Its type.
    pub kind: Kind,
    /// Its number, if it has one and could be decrypted.
    pub number: Optional,
    /// The path whose packet number space that is; 0 where the connection has one.
    pub path_id: u32,
    /// Bytes of the packet.
    pub size: u32,
    /// The first byte of a QUIC packet as it is on the wire; 0 of TCP.
    pub first_byte: u8,
    /// Bytes of the IP packet; None if an earlier packet of the same datagram has them.
    pub ip_size: Option<u32>,
    /// The ECN codepoint of the IP packet.
    pub ecn: Codepoint,
    /// The fate that the capture gives for it, if it gives one.
    pub fate: Option<Fate>,
    /// Whether its frames are known.
    pub decoded: bool,
    /// Its frames, in [`ObservedConnection::frames`].
    pub frames: Range<u32>,
}

impl PacketObservation {
    /// The packet, by what is known of its passing at both sides.
    pub(super) fn packet(
        &self,
        seen: [Option<Nanos>; 2],
        ecn: [Option<Codepoint>; 2],
        fate: Fate,
    ) -> Packet {
        Packet {
            sender: self.sender,
            kind: self.kind,
            number: self.number.count(),
            path_id: self.path_id,
            size: self.size,
            first_byte: self.first_byte,
            ip_size: self.ip_size,
            seen,
            ecn,
            fate,
            copy: false,
            decoded: self.decoded,
            frames: self.frames.clone(),
        }
    }
}

/// The arrival of a packet at its receiver.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// The ECN codepoint that it arrived with.
    pub ecn: Codepoint,
}

/// The observations of a connection at one place.
#[derive(Debug, Clone)]
pub struct ObservedConnection {
    /// Its protocol.
    pub protocol: Protocol,
    /// Client and server.
    pub ends: [SocketAddr; 2],
    /// The credit that the client and the server gave in their transport parameters, if these were
    /// seen.
    pub initial_credit: [Option<InitialCredit>; 2],
    /// The server's part of the handshake, as far as it was seen.
    pub handshake: Handshake,
    /// The wire image, which is visible without secrets.
    pub wire_image: WireImage,
    /// The TLS records in the streams of TCP, if there are any.
    pub tls: Option<TlsRecords>,
    /// The part of a connection of TCP in one of MPTCP; none if it is of its own.
    pub subflow: Option<Subflow>,
    /// Its packets as they passed.
    pub observations: Vec<PacketObservation>,
    /// The frames of all of them.
    pub frames: Vec<Frame>,
    /// The ranges of all ACK frames.
    pub ranges: Ranges,
}
