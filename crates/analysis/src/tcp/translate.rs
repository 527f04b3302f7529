//! Translates the segments of a joined connection to QUIC's terms: numbers, STREAM, ACK and
//! `MAX_STREAM_DATA` frames.

use std::ops::Range;

use super::acknowledged::{Ack, Acknowledged, Sent};
use super::content::Content;
use super::placement::{Placement, placements};
use super::sequence::Position;
use crate::connection::{Connection, Fate, Frame, Nanos, Packet, Ranges, Vantage};
use crate::intervals::Intervals;
use bentpipe_wire::quic::End;
use bentpipe_wire::tcp::Header;

/// Puts into the place of [`Frame::Segment`] what it amounts to, and numbers the packets.
pub(crate) fn translate(connection: &mut Connection) {
    let headers = take_headers(connection);
    let placements = placements(&connection.packets, &headers);
    let mut counts = [0; 2];
    for packet in &mut connection.packets {
        let count = &mut counts[packet.sender as usize];
        packet.number = Some(*count);
        *count += 1;
    }
    let repeats = repeats(&connection.packets, &headers);
    let segments = Segments {
        connection,
        headers: &headers,
        placements: &placements,
        repeats: &repeats,
    };
    let (mut ranges, mut acks) = (Ranges::new(), vec![Answer::default(); headers.len()]);
    for sender in [End::Client, End::Server] {
        segments.acknowledge(sender, &mut ranges, &mut acks);
    }
    connection.ranges = ranges;
    let mut translator = FrameTranslator::new(connection, &headers, &placements);
    for (at, packet) in connection.packets.iter_mut().enumerate() {
        let start = index(&connection.frames);
        let segment = SegmentFacts {
            header: &headers[at],
            placement: &placements[at],
            answer: &acks[at],
            repeats: repeats[at],
        };
        translator.frames_of(packet.sender, &segment, &mut connection.frames);
        packet.frames = start..index(&connection.frames);
    }
}

/// The header of each packet, in order.
fn take_headers(connection: &mut Connection) -> Vec<Header> {
    let mut frames = std::mem::take(&mut connection.frames);
    let packets = connection.packets.iter();
    let headers = packets.map(|packet| match &mut frames[packet.frames.start as usize] {
        Frame::Segment(header) => std::mem::take(&mut **header),
        other => unreachable!("a TCP recorder keeps segments, not {}", other.name()),
    });
    headers.collect()
}

/// Every segment has an ACK field and a window. Whether a segment was sent for other reasons, and
/// repeats those that an earlier one had which arrived, as far as is known.
fn repeats(packets: &[Packet], headers: &[Header]) -> Vec<bool> {
    let mut last = [None, None];
    let segments = packets.iter().zip(headers).map(|(packet, header)| {
        let last = &mut last[packet.sender as usize];
        let says = Some((header.acknowledgment, &header.sack, header.window));
        let repeats = header.extent() > 0 && *last == says;
        if arrived(packet) {
            *last = says;
        }
        repeats
    });
    segments.collect()
}

fn arrived(packet: &Packet) -> bool {
    matches!(packet.fate, Fate::Delivered | Fate::Unknown)
}

/// The acknowledgment in a segment, in numbers of segments.
#[derive(Debug, Clone, Default)]
struct Answer {
    ranges: Range<u32>,
    /// The segment of which it gives an RTT sample.
    answered: Option<u64>,
}

/// The segments of a connection that is being translated.
struct Segments<'a> {
    connection: &'a Connection,
    headers: &'a [Header],
    placements: &'a [Placement],
    /// Which of them have nothing new to say of the other end's.
    repeats: &'a [bool],
}

impl Segments<'_> {
    /// Finds out which segments of `sender` each ACK covers: in the order in which segments arrived
    /// and ACKs left at the receiver or, if its side was not captured, in which they left and
    /// arrived at the sender.
    fn acknowledge(&self, sender: End, ranges: &mut Ranges, answers: &mut [Answer]) {
        let (sent, segments) = self.sent(sender);
        let mut acknowledged = Acknowledged::new(segments);
        let index_of = |at: usize| sent.binary_search(&at).ok();
        for at in self.in_order(sender) {
            if self.connection.packets[at].sender == sender {
                if let Some(index) = index_of(at) {
                    acknowledged.arrives(index);
                }
            } else if let Some(ack) = self.ack(at) {
                let start = index(ranges);
                let answered = acknowledged.take(&ack, ranges);
                answers[at] = Answer {
                    ranges: start..index(ranges),
                    answered,
                };
            }
        }
    }

    /// The segments of `sender` that take sequence space: the indices of their packets, and they.
    fn sent(&self, sender: End) -> (Vec<usize>, Vec<Sent>) {
        let own = self.connection.packets.iter().enumerate();
        let own = own.filter(|(at, it)| it.sender == sender && self.headers[*at].extent() > 0);
        let (packets, mut sent): (Vec<usize>, Vec<Sent>) = own
            .map(|(at, packet)| {
                let sent = Sent {
                    number: packet.number.expect("just counted"),
                    extent: self.placements[at].extent.clone(),
                    timestamp: self.headers[at].timestamps.map(|(value, _)| value),
                    again: false,
                };
                (at, sent)
            })
            .unzip();
        let (mut once, mut again) = (Intervals::default(), Intervals::default());
        for segment in &sent {
            let extent = offsets(&segment.extent);
            if once.add(extent.clone()) < extent.end - extent.start {
                again.add(extent);
            }
        }
        for segment in &mut sent {
            segment.again = again.meets(&offsets(&segment.extent));
        }
        (packets, sent)
    }

    /// The packets that passed the receiver of `sender`'s segments, or else the sender, in the
    /// order in which they did.
    fn in_order(&self, sender: End) -> Vec<usize> {
        let place = match self.connection.vantage {
            Vantage::At(end) => end,
            Vantage::Both | Vantage::Between => sender.other(),
        };
        let packets = self.connection.packets.iter().enumerate();
        let mut passed: Vec<(Nanos, usize)> = packets
            .filter_map(|(at, packet)| {
                let seen = packet.seen[place as usize];
                let is_ack = packet.sender != sender;
                Some((seen.or(is_ack.then(|| packet.time()))?, at))
            })
            .collect();
        passed.sort_unstable();
        passed.into_iter().map(|(_, at)| at).collect()
    }

    fn ack(&self, at: usize) -> Option<Ack> {
        if self.repeats[at] {
            return None;
        }
        let (header, placement) = (&self.headers[at], &self.placements[at]);
        Some(Ack {
            arrived: arrived(&self.connection.packets[at]),
            cumulative: placement.acknowledgment?,
            sack: placement.sack.clone(),
            echo: header.timestamps.map(|(_, echo)| echo),
        })
    }
}

/// All that is known of a segment.
struct SegmentFacts<'a> {
    header: &'a Header,
    placement: &'a Placement,
    answer: &'a Answer,
    repeats: bool,
}

/// Translates segment after segment to frames.
struct FrameTranslator {
    /// The window scales of client and server (RFC 7323): powers of two by which their windows are
    /// multiplied. None: not known.
    scales: Option<[u8; 2]>,
    /// Behind the last byte that client and server sent.
    next: [Option<Position>; 2],
    /// The last window of client and server.
    windows: [Option<u16>; 2],
    /// None: all of the streams counts as data.
    content: Option<Content>,
    /// Of a subflow, where the streams of client and server end.
    ends: Option<[Position; 2]>,
    /// Whether windows are about data of other subflows, too: RFC 8684 section 3.3.1 counts them
    /// from the data of the connection that were acknowledged.
    shares_windows: bool,
    /// Whether the SYNs agreed on accurate ECN, whose flags count marks and echo none.
    has_accurate_ecn: bool,
}

impl FrameTranslator {
    fn new(connection: &Connection, headers: &[Header], placements: &[Placement]) -> Self {
        let scale_of = |end: End| {
            let mut own = connection.packets.iter().zip(headers);
            let syn = own.find(|(packet, header)| packet.sender == end && header.syn);
            syn.map(|(_, header)| header.window_scale)
        };
        // RFC 7323 section 2.2: windows are scaled if both SYNs have the option.
        let scales = match [End::Client, End::Server].map(scale_of) {
            [Some(Some(client)), Some(Some(server))] => Some([client, server]),
            [Some(None), _] | [_, Some(None)] => Some([0, 0]),
            _ => None,
        };
        Self {
            scales,
            next: [None; 2],
            windows: [None; 2],
            content: Content::of(connection.tls.as_ref()),
            ends: connection.subflow.map(|_| {
                let segments: Vec<_> = headers.iter().zip(placements).collect();
                ends(&connection.packets, &segments)
            }),
            shares_windows: connection.has_several_paths(),
            has_accurate_ecn: has_accurate_ecn(headers),
        }
    }

    fn frames_of(&mut self, sender: End, segment: &SegmentFacts<'_>, frames: &mut Vec<Frame>) {
        let SegmentFacts {
            header,
            placement,
            answer,
            repeats,
        } = segment;
        frames.extend(self.special(sender, header, placement).map(Frame::Other));
        self.stream(sender, header, placement, frames);
        if !answer.ranges.is_empty() {
            frames.push(Frame::Ack {
                path_id: None,
                ranges: answer.ranges.clone(),
                delay_us: None,
                ecn: None,
            });
        }
        frames.extend(answer.answered.map(Frame::Echo));
        if !repeats {
            frames.extend(self.credit(sender, header, placement));
        }
        let next = &mut self.next[sender as usize];
        if !header.rst {
            *next = (*next).max(Some(placement.extent.end));
            self.windows[sender as usize] = Some(header.window);
        }
    }

    fn stream(&self, sender: End, header: &Header, placement: &Placement, frames: &mut Vec<Frame>) {
        let first = placement.extent.start + Position::from(header.syn) - 1;
        let payload = first..first + Position::from(header.length);
        let is_last = self.ends.is_some_and(|ends| {
            let has_space = header.extent() > u32::from(header.fin);
            has_space && payload.end == ends[sender as usize]
        });
        let fin = header.fin || is_last;
        let payload = offsets(&payload);
        if let Some(content) = &self.content {
            return content.frames(sender, &payload, fin, frames);
        }
        let length = u32::try_from(payload.end - payload.start).expect("as the header has it");
        frames.extend((length > 0 || fin).then_some(Frame::Stream {
            id: 0,
            offset: payload.start,
            length,
            fin,
        }));
    }

    /// The properties of a segment beside data and ACK.
    fn special(
        &self,
        sender: End,
        header: &Header,
        placement: &Placement,
    ) -> impl Iterator<Item = &'static str> {
        let is_plain = !(header.syn || header.fin || header.rst);
        let ahead = self.next[sender as usize].map(|next| placement.extent.start - next);
        let is_window_closed = self.windows[sender.other() as usize] == Some(0);
        let is_keep_alive = is_plain && header.length <= 1 && ahead == Some(-1);
        let is_probe = is_plain && header.length == 1 && ahead == Some(0) && is_window_closed;
        let is_sync_answer = header.syn && header.acknowledgment.is_some();
        let sets_up = header.syn && header.ece && header.cwr != is_sync_answer;
        let has_flags = !header.syn && !self.has_accurate_ecn;
        let sets_up_accurate = is_sync_answer && self.has_accurate_ecn;
        let names = [
            (header.syn, "SYN"),
            (sets_up && !sets_up_accurate, "ECN_SETUP"),
            (sets_up_accurate, "ACCURATE_ECN_SETUP"),
            (has_flags && header.ece, "ECE"),
            (has_flags && header.cwr, "CWR"),
            (header.rst, "RST"),
            (is_keep_alive, "KEEP_ALIVE"),
            (is_probe, "ZERO_WINDOW_PROBE"),
            (is_duplicate_sack(placement), "DSACK"),
        ];
        names
            .into_iter()
            .filter_map(|(is, name)| is.then_some(name))
    }

    /// The stream data that the receiver gives credit for.
    fn credit(&self, sender: End, header: &Header, placement: &Placement) -> Option<Frame> {
        let scale = match self.scales? {
            _ if header.syn => 0,
            scales => scales[sender as usize],
        };
        if header.rst || self.shares_windows {
            return None;
        }
        let acknowledged = match placement.acknowledgment {
            Some(position) => u64::try_from(position - 1).unwrap_or(0),
            None if header.syn => 0,
            None => return None,
        };
        let maximum = acknowledged + (u64::from(header.window) << scale);
        let content = self.content.as_ref();
        Some(Frame::MaxStreamData {
            id: 0,
            maximum: content.map_or(maximum, |it| it.position(sender.other(), maximum)),
        })
    }
}

/// Behind the last byte that client and server sent; 0 if there is none.
fn ends(packets: &[Packet], segments: &[(&Header, &Placement)]) -> [Position; 2] {
    let mut ends = [0; 2];
    for (packet, (header, placement)) in packets.iter().zip(segments) {
        let end = &mut ends[packet.sender as usize];
        if header.length > 0 {
            *end = (*end).max(placement.extent.end - Position::from(header.fin) - 1);
        }
    }
    ends
}

/// RFC 9768 section 3.1.1: a SYN with all three flags asks for accurate ECN; its answer agrees
/// unless it is that of an end which knows only ECN of RFC 3168, or none.
fn has_accurate_ecn(headers: &[Header]) -> bool {
    let flags = |header: &Header| [header.ae, header.cwr, header.ece];
    let mut syns = headers.iter().filter(|it| it.syn);
    let asks = |it: &&Header| it.acknowledgment.is_none() && flags(it) == [true; 3];
    let agrees = |it: &Header| {
        let is_answer = it.acknowledgment.is_some();
        is_answer && matches!(flags(it), [false, true, _] | [true, _, false])
    };
    syns.find(asks).is_some() && syns.any(agrees)
}

/// RFC 2883 section 4: the first block tells of bytes that came twice if the ACK or the second
/// block has them.
fn is_duplicate_sack(placement: &Placement) -> bool {
    let Some(first) = placement.sack.first() else {
        return false;
    };
    let is_acknowledged = placement.acknowledgment.is_some_and(|ack| first.end <= ack);
    let second = placement.sack.get(1);
    is_acknowledged || second.is_some_and(|it| it.start <= first.start && first.end <= it.end)
}

/// The part that does not lie before the beginning: garbage, and keep-alives with a byte before any
/// data.
fn offsets(range: &Range<Position>) -> Range<u64> {
    let offset = |position: Position| u64::try_from(position).unwrap_or(0);
    offset(range.start)..offset(range.end)
}

fn index<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).expect("fewer than 2^32 frames and ranges in a capture")
}
