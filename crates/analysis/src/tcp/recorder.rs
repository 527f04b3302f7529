//! Notes the TCP segments that pass at one place, and tells their connections apart.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::sequence::Unwrapper;
use super::subflows::{SubflowState, Tokens, Whole};
use crate::connection::{
    CaptureInfo, Frame, Kind, ObservedConnection, PacketObservation, Protocol, Recording, WireImage,
};
use crate::optional::Optional;
use bentpipe_wire::quic::{End, Identity};
use bentpipe_wire::tcp::Header;
use bentpipe_wire::tcp::Segment;
use bentpipe_wire::{KeyLog, Path};

/// A segment is not taken apart into smaller ones; below RFC 9293's default of 536, with options.
const SMALLEST_PIECE: u32 = 476;

/// The recorder of the TCP segments that pass one place.
#[derive(Debug)]
pub struct Recorder<'k> {
    secrets: &'k KeyLog,
    connections: Vec<ObservedConnection>,
    /// The state of each, beyond its recording.
    states: Vec<State>,
    wholes: Vec<Whole<'k>>,
    tokens: Tokens,
    /// The latest connection on these addresses and ports, by the path from its client.
    latest: HashMap<Path, usize>,
}

/// The parameters in the SYNs of a connection, and the content of its streams.
#[derive(Debug)]
struct State {
    /// Initial sequence numbers of client and server.
    initial: [Option<u32>; 2],
    mss: [Option<u16>; 2],
    sequences: [Unwrapper; 2],
    subflow: SubflowState,
    /// The number of the whole whose data it carries.
    whole: usize,
}

impl State {
    fn new(whole: usize) -> Self {
        Self {
            initial: [None; 2],
            mss: [None; 2],
            sequences: [Unwrapper::default(), Unwrapper::default()],
            subflow: SubflowState::default(),
            whole,
        }
    }

    /// Takes in a segment. Streams count from their SYN.
    fn take(
        &mut self,
        sender: End,
        (header, payload): (&Header, &[u8]),
        wholes: &mut [Whole<'_>],
        tokens: &mut Tokens,
    ) {
        let end = sender as usize;
        if header.syn {
            self.initial[end] = Some(header.sequence);
            self.mss[end] = header.mss;
        }
        let known = (&mut *wholes, tokens);
        self.whole = self.subflow.set_up(sender, header, self.whole, known);
        let Some(initial) = self.initial[end].filter(|_| !header.rst) else {
            return;
        };
        let position = self.sequences[end].sent(header.sequence);
        let first = position + i64::from(header.syn) - i64::from(initial) - 1;
        if let Ok(offset) = u64::try_from(first) {
            let whole = &mut wholes[self.whole];
            self.subflow.read(sender, (header, payload), offset, whole);
        }
    }
}

impl<'k> Recorder<'k> {
    /// A recorder that has seen nothing.
    #[must_use]
    pub fn new(secrets: &'k KeyLog) -> Self {
        Self {
            secrets,
            connections: Vec::new(),
            states: Vec::new(),
            wholes: Vec::new(),
            tokens: Tokens::new(),
            latest: HashMap::new(),
        }
    }

    /// Notes a segment, and what was captured of its payload.
    pub fn segment(&mut self, segment: &Segment, payload: &[u8], captured: CaptureInfo) {
        let (number, sender) = self.connection(segment);
        let state = &mut self.states[number];
        let said = (&segment.header, payload);
        state.take(sender, said, &mut self.wholes, &mut self.tokens);
        let recorded = &mut self.connections[number];
        for piece in pieces(segment, state.mss) {
            let at = u32::try_from(recorded.frames.len()).expect("fewer than 2^32 segments");
            let size = piece.header_bytes + piece.header.length;
            recorded.observations.push(PacketObservation {
                time: captured.time,
                frame: u32::try_from(captured.frame).expect("fewer than 2^32 captured packets"),
                identity: identity(&piece),
                sender,
                kind: Kind::Tcp,
                number: Optional::default(), // known when all places have been joined
                path_id: 0,
                size,
                first_byte: 0,
                ip_size: Some(size + if piece.path.source.is_ipv4() { 20 } else { 40 }),
                ecn: captured.ecn,
                fate: captured.fate,
                decoded: true,
                frames: at..at + 1,
            });
            recorded.frames.push(Frame::Segment(Box::new(piece.header)));
        }
    }

    /// Adds what was recorded to what else was at this place.
    pub fn finish(self, recording: &mut Recording) {
        let with_data = self.states.iter().filter(|it| it.subflow.has_data());
        let mut subflows = vec![0_usize; self.wholes.len()];
        with_data.for_each(|it| subflows[it.whole] += 1);
        let wholes = self.wholes.into_iter().map(Whole::finish);
        let mut wholes: Vec<_> = wholes.collect();
        let read = self.connections.into_iter().zip(self.states);
        let connections = read.map(|(connection, state)| {
            let whole = &mut wholes[state.whole];
            let others = subflows[state.whole] - usize::from(state.subflow.has_data());
            let subflow = state.subflow.role_among(others);
            let tls = match (subflow, &whole) {
                (None, _) => whole.take(),
                (Some(_), whole) => whole.as_ref().map(|it| state.subflow.own_part(it)),
            };
            ObservedConnection {
                handshake: tls.as_ref().map(|it| it.handshake).unwrap_or_default(),
                wire_image: WireImage {
                    client_hello: tls
                        .as_ref()
                        .map(|it| it.client_hello.clone())
                        .unwrap_or_default(),
                    ..WireImage::default()
                },
                tls,
                subflow,
                ..connection
            }
        });
        recording.connections.extend(connections);
    }

    /// The connection of a segment, and who of it sent it.
    fn connection(&mut self, segment: &Segment) -> (usize, End) {
        let known = [
            (segment.path, End::Client),
            (segment.path.reversed(), End::Server),
        ]
        .into_iter()
        .find_map(|(path, sender)| Some((*self.latest.get(&path)?, sender)));
        if let Some((number, sender)) = known
            && !begins_anew(&segment.header, sender, self.states[number].initial)
        {
            return (number, sender);
        }
        let sender = first_sender(segment);
        let path = match sender {
            End::Client => segment.path,
            End::Server => segment.path.reversed(),
        };
        let number = self.connections.len();
        self.latest.remove(&path.reversed());
        self.latest.insert(path, number);
        self.states.push(State::new(self.wholes.len()));
        self.wholes.push(Whole::new(self.secrets));
        self.connections.push(ObservedConnection {
            protocol: Protocol::Tcp,
            ends: [path.source, path.destination],
            initial_credit: [None; 2],
            handshake: bentpipe_wire::quic::Handshake::default(), // known when all has been seen
            wire_image: WireImage::default(),                     // likewise
            tls: None,                                            // likewise
            subflow: None,                                        // likewise
            observations: Vec::new(),
            frames: Vec::new(),
            ranges: Vec::new(),
        });
        (number, sender)
    }
}

/// Whether a segment of a known connection is the first of the next one: a SYN that is not one of
/// this one, from either end, sent again. Both ends may begin at once (RFC 9293 section 3.5).
fn begins_anew(header: &Header, sender: End, initial: [Option<u32>; 2]) -> bool {
    if !header.syn || header.acknowledgment.is_some() {
        return false;
    }
    match (initial[sender as usize], initial[sender.other() as usize]) {
        (Some(known), _) => known != header.sequence,
        (None, Some(_)) => false,
        (None, None) => true,
    }
}

/// The sender of the first segment that was seen of a connection.
fn first_sender(segment: &Segment) -> End {
    let (header, path) = (&segment.header, segment.path);
    let is_client = match (header.syn, header.acknowledgment) {
        (true, None) => true,
        (true, Some(_)) => false,
        (false, _) => path.source.port() >= path.destination.port(),
    };
    if is_client { End::Client } else { End::Server }
}

/// The segments on the wire that a segment was or will be: itself, unless it is larger than `mss`
/// allows.
fn pieces(segment: &Segment, mss: [Option<u16>; 2]) -> Vec<Segment> {
    let [Some(client), Some(server)] = mss else {
        return vec![segment.clone()];
    };
    // RFC 6691: options take from what the MSS leaves for the payload.
    let options = segment.header_bytes - 20;
    let largest = u32::from(client.min(server)).saturating_sub(options);
    let length = segment.header.length;
    if length <= largest || largest < SMALLEST_PIECE {
        return vec![segment.clone()];
    }
    let offsets = (0..length).step_by(usize::try_from(largest).expect("16 bits"));
    let piece = |(count, offset): (u16, u32)| {
        let mut piece = segment.clone();
        piece.header.sequence = segment.header.sequence.wrapping_add(offset);
        piece.header.length = largest.min(length - offset);
        piece.header.cwr = segment.header.cwr && offset == 0;
        piece.header.fin = segment.header.fin && length - offset <= largest;
        piece.identification = segment.identification.map(|it| it.wrapping_add(count));
        piece
    };
    (0..=u16::MAX).zip(offsets).map(piece).collect()
}

/// Tells a segment from all others, wherever it is seen.
fn identity(segment: &Segment) -> Identity {
    let header = &segment.header;
    let mut hasher = DefaultHasher::new();
    (header.syn, header.fin, header.rst, header.window).hash(&mut hasher);
    (header.timestamps, &header.sack, segment.identification).hash(&mut hasher);
    let mut identity = Identity::default();
    identity[..4].copy_from_slice(&header.sequence.to_be_bytes());
    identity[4..8].copy_from_slice(&header.acknowledgment.unwrap_or(0).to_be_bytes());
    identity[8..].copy_from_slice(&hasher.finish().to_be_bytes());
    identity
}
