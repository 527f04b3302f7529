//! Notes what passes at one place: every packet of every connection, decoded where the secrets
//! allow it.

use std::collections::{BTreeMap, HashMap};

use bentpipe_wire::quic::{
    self, Decoded, End, Handshake, Identity, Observer, Packet, PacketType, Reason, Scratch,
    Undecoded,
};
use bentpipe_wire::{Datagram, DecapsulationError, KeyLog, Path};

use super::frame::Frame;
use super::observed::{ObservedConnection, PacketObservation};
use super::unbegun::Flows;
use super::wire_image::{LaterAddress, WireImage};
use super::{Codepoint, Fate, Kind, Protocol};
use crate::optional::Optional;

/// The observations of one place, connection by connection.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// In the order of their first packets.
    pub connections: Vec<ObservedConnection>,
    /// The undecodable parts, by the reason.
    pub undecodable: BTreeMap<String, Undecodable>,
}

/// The count of what was left out for one and the same reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undecodable {
    /// The number of parts.
    pub count: u64,
    /// The first captured packet with one, counted from 1 within its file.
    pub first_frame: u64,
}

impl Recording {
    /// Adds the connections whose beginning was not seen.
    fn add_unbegun(&mut self, flows: Flows) {
        let (connections, others) = flows.finish(&self.connections);
        for frame in others {
            self.note_undecodable(frame, format!("UDP datagrams: {}", Reason::NoConnection));
        }
        for observation in connections.iter().flat_map(|it| &it.observations) {
            let what = "QUIC packets of connections whose beginning was not seen, and no secrets";
            self.note_undecodable(u64::from(observation.frame), what.to_owned());
        }
        self.connections.extend(connections);
    }

    /// Notes that something of captured packet `frame` could not be decoded.
    pub fn note_undecodable(&mut self, frame: u64, what: String) {
        let entry = self.undecodable.entry(what);
        let missing = entry.or_insert(Undecodable {
            count: 0,
            first_frame: frame,
        });
        missing.count += 1;
        missing.first_frame = missing.first_frame.min(frame); // packets that waited come late
    }
}

/// The recorder of the QUIC packets that pass one place.
#[derive(Debug)]
pub struct Recorder<'k> {
    observer: Observer<'k>,
    recording: Recording,
    datagrams: u64,
    /// Datagrams with packets that the observer cannot decode yet, by their numbers.
    waiting: HashMap<u64, Origin>,
    /// Packets of connections whose beginning was not seen.
    flows: Flows,
}

impl<'k> Recorder<'k> {
    /// A recorder that has seen nothing.
    #[must_use]
    pub fn new(secrets: &'k KeyLog) -> Self {
        Self {
            observer: Observer::new(secrets),
            recording: Recording::default(),
            datagrams: 0,
            waiting: HashMap::new(),
            flows: Flows::default(),
        }
    }

    /// Exchanges the memory that packets are decrypted in; see [`Observer::exchange_scratch`].
    pub fn exchange_scratch(&mut self, scratch: &mut Scratch) {
        self.observer.exchange_scratch(scratch);
    }

    /// Notes the packets of a datagram.
    pub fn datagram(&mut self, datagram: &Datagram<'_>, captured: CaptureInfo) {
        let mut recorder = DatagramRecorder {
            recording: &mut self.recording,
            path: datagram.path,
            origin: Origin {
                captured,
                ip_size: Some(datagram.ip_size()),
            },
            waiting: &mut self.waiting,
            flows: &mut self.flows,
        };
        self.observer
            .datagram(datagram, |seen| recorder.record(seen));
        let origin = recorder.origin;
        if self.observer.waiting().next_back() == Some(self.datagrams) {
            self.waiting.insert(self.datagrams, origin);
        }
        self.datagrams += 1;
    }

    /// Notes a captured packet that is no datagram.
    pub fn no_datagram(&mut self, frame: u64, reason: DecapsulationError) {
        let what = format!("captured packets: {reason}");
        self.recording.note_undecodable(frame, what);
    }

    /// Notes a captured packet without a time.
    pub fn no_time(&mut self, frame: u64) {
        self.recording
            .note_undecodable(frame, "captured packets: no time given".to_owned());
    }

    /// The recorded packets.
    #[must_use]
    pub fn finish(mut self) -> Recording {
        let (recording, waiting) = (&mut self.recording, &self.waiting);
        // Packets that waited to the end are of unknown connections, so they have no observations.
        self.observer.finish(|seen| {
            if let Err(undecoded) = seen {
                let origin = undecoded.waited_since.and_then(|since| waiting.get(&since));
                let frame = origin.map_or(0, |it| it.captured.frame);
                recording.note_undecodable(frame, format!("QUIC packets: {}", undecoded.reason));
            }
        });
        self.recording.add_unbegun(self.flows);
        let begun = self.observer.connections();
        for (number, connection) in self
            .recording
            .connections
            .iter_mut()
            .take(begun)
            .enumerate()
        {
            connection.protocol = Protocol::Quic(self.observer.version(number));
            connection.handshake = self.observer.handshake(number);
            connection.wire_image.client_hello = self.observer.client_hello(number).clone();
            connection.wire_image.connection_ids = [End::Client, End::Server]
                .map(|end| self.observer.connection_ids(number, end).to_vec());
            connection.initial_credit =
                [End::Client, End::Server].map(|end| self.observer.initial_credit(number, end));
        }
        self.recording
    }
}

/// The facts that a capture has of a packet beside its bytes: when it passed, and what became of
/// it.
#[derive(Debug, Clone, Copy)]
pub struct CaptureInfo {
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// The captured packet, counted from 1 within its file.
    pub frame: u64,
    /// The ECN codepoint of the IP packet; of one in a tunnel, of that which the tunnel carries.
    pub ecn: Codepoint,
    /// The fate that the capture gives for it.
    pub fate: Option<Fate>,
}

/// Where packets came from.
#[derive(Debug, Clone, Copy)]
struct Origin {
    captured: CaptureInfo,
    /// The size of the IP packet, until the first QUIC packet in it has taken it.
    ip_size: Option<u32>,
}

/// A datagram while its packets are noted.
struct DatagramRecorder<'a> {
    recording: &'a mut Recording,
    path: Path,
    origin: Origin,
    waiting: &'a mut HashMap<u64, Origin>,
    flows: &'a mut Flows,
}

impl DatagramRecorder<'_> {
    fn record(&mut self, seen: Decoded<'_>) {
        match seen {
            Ok(packet) => self.packet(&packet),
            Err(undecoded) => self.undecoded(&undecoded),
        }
    }

    /// Where a packet came from; its size counts once. One that had to wait came in an earlier
    /// datagram.
    fn origin_of(&mut self, waited_since: Option<u64>) -> Origin {
        let waited = waited_since.and_then(|since| self.waiting.get_mut(&since));
        let origin = waited.unwrap_or(&mut self.origin);
        Origin {
            ip_size: origin.ip_size.take(),
            ..*origin
        }
    }

    fn packet(&mut self, packet: &Packet<'_>) {
        let origin = self.origin_of(packet.waited_since);
        let Some(number) = packet.connection else {
            let what = format!("{} packets of no known connection", packet.kind.name());
            return self.recording.note_undecodable(origin.captured.frame, what);
        };
        self.note_address(number, packet.sender);
        let recorded = self.connection(number, packet.sender);
        let start = index(&recorded.frames);
        let mut unread = None;
        for frame in packet.frames() {
            match frame {
                Ok(frame) => {
                    if let quic::Frame::Unknown { frame_type, .. } = frame {
                        let rest = "rests of packets, from a frame of the unknown type";
                        unread = Some(format!("{rest} {frame_type:#x} on"));
                    }
                    let frame =
                        Frame::without_data(&frame, packet.parameters, &mut recorded.ranges);
                    recorded.frames.push(frame);
                }
                Err(error) => {
                    let kind = packet.kind.name();
                    unread = Some(format!("frames of {kind} packets: {error}"));
                }
            }
        }
        recorded.observations.push(PacketObservation {
            identity: packet.identity,
            number: packet.number.into(),
            path_id: packet.path_id,
            decoded: true,
            frames: start..index(&recorded.frames),
            first_byte: packet.first_byte,
            ..origin.observation(packet.sender, packet.kind, packet.size)
        });
        if let Some(what) = unread {
            self.recording.note_undecodable(origin.captured.frame, what);
        }
    }

    fn undecoded(&mut self, undecoded: &Undecoded) {
        let origin = self.origin_of(undecoded.waited_since);
        if undecoded.known.is_none() && self.is_of_flow(&origin, undecoded) {
            return;
        }
        let what = match undecoded.reason {
            reason @ (Reason::NoConnection | Reason::Version(_)) => {
                format!("UDP datagrams: {reason}")
            }
            reason => format!("QUIC packets: {reason}"),
        };
        self.recording.note_undecodable(origin.captured.frame, what);
        let Some((number, sender, kind)) = undecoded.known else {
            return;
        };
        self.note_address(number, sender);
        let recorded = self.connection(number, sender);
        let observation = origin.of_undecoded(sender, kind, undecoded);
        recorded.observations.push(observation);
    }

    /// Whether a packet of no known connection may be of a flow of QUIC, which then has it.
    fn is_of_flow(&mut self, origin: &Origin, undecoded: &Undecoded) -> bool {
        let Some((path, sender)) = self.flows.of(self.path, undecoded.long.is_some()) else {
            return false;
        };
        match undecoded.reason {
            Reason::NoConnection | Reason::CutShort => {
                let kind = undecoded.long.map_or(PacketType::OneRtt, |(_, kind)| kind);
                let observation = origin.of_undecoded(sender, kind, undecoded);
                let version = undecoded.long.map(|(version, _)| version);
                self.flows.note(path, observation, version);
                true
            }
            Reason::Version(_) => {
                self.flows.refuse(path);
                false
            }
            _ => false,
        }
    }

    /// Notes where the sender of the datagram is.
    fn note_address(&mut self, number: usize, sender: End) {
        let seen = LaterAddress {
            end: sender,
            address: self.path.source,
            since: self.origin.captured.time,
        };
        let recorded = self.connection(number, sender);
        let first = recorded.ends[sender as usize];
        if first != seen.address {
            recorded.wire_image.note_address(sender, first, seen);
        }
    }

    /// The connection of that number; the observer counts them from 0 as they begin.
    fn connection(&mut self, number: usize, sender: End) -> &mut ObservedConnection {
        let connections = &mut self.recording.connections;
        while connections.len() <= number {
            let (source, destination) = (self.path.source, self.path.destination);
            connections.push(ObservedConnection {
                protocol: Protocol::Quic(0), // known when all has been seen: it may still change
                ends: match sender {
                    End::Client => [source, destination],
                    End::Server => [destination, source],
                },
                initial_credit: [None; 2],        // likewise
                handshake: Handshake::default(),  // likewise
                wire_image: WireImage::default(), // likewise
                tls: None,
                subflow: None,
                observations: Vec::new(),
                frames: Vec::new(),
                ranges: Vec::new(),
            });
        }
        &mut connections[number]
    }
}

impl Origin {
    /// A packet that could not be decoded.
    fn of_undecoded(
        &self,
        sender: End,
        kind: PacketType,
        undecoded: &Undecoded,
    ) -> PacketObservation {
        PacketObservation {
            identity: undecoded.identity,
            first_byte: undecoded.first_byte,
            ..self.observation(sender, kind, undecoded.size)
        }
    }

    /// A packet of which no more is known.
    fn observation(&self, sender: End, kind: PacketType, size: usize) -> PacketObservation {
        PacketObservation {
            time: self.captured.time,
            frame: u32::try_from(self.captured.frame).expect("fewer than 2^32 captured packets"),
            identity: Identity::default(),
            sender,
            kind: Kind::Quic(kind),
            number: Optional::default(),
            path_id: 0,
            size: u32::try_from(size).expect("a packet fits a datagram"),
            first_byte: 0,
            ip_size: self.ip_size,
            ecn: self.captured.ecn,
            fate: self.captured.fate,
            decoded: false,
            frames: 0..0,
        }
    }
}

fn index(frames: &[Frame]) -> u32 {
    u32::try_from(frames.len()).expect("fewer than 2^32 frames in a capture")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames that are kept of a 1-RTT packet with this payload, and what is noted as not
    /// decoded.
    fn frames_of(payload: &[u8]) -> (Vec<String>, Vec<String>) {
        let mut recording = Recording::default();
        let captured = CaptureInfo {
            time: 1_000_000,
            frame: 2,
            ecn: Codepoint::Ect0,
            fate: None,
        };
        let mut recorder = DatagramRecorder {
            recording: &mut recording,
            path: Path {
                source: "192.0.2.1:50000".parse().unwrap(),
                destination: "198.51.100.1:443".parse().unwrap(),
            },
            origin: Origin {
                captured,
                ip_size: None,
            },
            waiting: &mut HashMap::new(),
            flows: &mut Flows::default(),
        };
        recorder.record(Ok(Packet {
            connection: Some(0),
            sender: End::Client,
            kind: PacketType::OneRtt,
            number: Some(0),
            path_id: 0,
            size: payload.len() + 29,
            first_byte: 0x40,
            identity: Identity::default(),
            payload,
            parameters: None,
            waited_since: None,
        }));
        let kept = &recording.connections[0].frames;
        let labels = kept.iter().map(|it| it.label().into_owned()).collect();
        let undecodable = recording.undecodable.iter();
        let said =
            undecodable.map(|(what, it)| format!("{} {what}, frame {}", it.count, it.first_frame));
        (labels, said.collect())
    }

    #[test]
    fn frames_of_extensions_are_kept() {
        let ack_frequency = [0x40, 0xaf, 1, 2, 0x44, 0x00, 3];
        let datagrams = [&[0x31, 2, 7, 7][..], &[0x30, 7, 7, 7]].concat();
        let payload = [&ack_frequency[..], &[0x1f], &datagrams].concat();
        let (labels, said) = frames_of(&payload);
        let expected = ["ACK_FREQUENCY", "IMMEDIATE_ACK", "DATAGRAM", "DATAGRAM"];
        assert_eq!(labels, expected);
        assert_eq!(said, [""; 0]);
    }

    #[test]
    fn an_unknown_frame_keeps_its_type_and_is_noted() {
        let (labels, said) = frames_of(&[0x01, 0x52, 0x34, 9, 9, 9]);
        assert_eq!(labels, ["PING", "UNKNOWN(0x1234)"]);
        let rest = "1 rests of packets, from a frame of the unknown type 0x1234 on, frame 2";
        assert_eq!(said, [rest]);
    }
}
