//! The verification of frames with deadlines by the wire: what carried them, that they were neither
//! sent nor reported too early, and that the server gave up those whose time was over, and no
//! others.

use std::collections::BTreeMap;
use std::time::Duration;

use bentpipe_analysis::connection::{Fate, Frame, Packet};
use bentpipe_analysis::metrics::arrivals;
use bentpipe_endpoint::contract::RequestReport;
use bentpipe_endpoint::{Carrier, FrameStream};
use bentpipe_wire::quic::End;

use super::schedule::{began, span};
use crate::evidence::DecodedConnection;
use crate::verdict::verifier::CLOCKS;

/// So long after a deadline a server may still send: a busy machine may keep a program in real time
/// from its processor after it has looked at the clock.
const LATE: Duration = Duration::from_secs(1);
/// Bytes of the header of a media frame (`endpoints/contract/media.md`).
const HEADER: u64 = 20;

/// The claim of a stream of frames: what the wire has to show of it.
pub struct Wire<'a> {
    stream: &'a FrameStream,
    /// How many were to be made.
    frames: usize,
    /// The client's report of each.
    said: &'a [RequestReport],
    began: Option<Duration>,
}

/// The type of a stream (RFC 9000, section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamType {
    /// Bidirectional, opened by the client.
    Question,
    /// Unidirectional, opened by the server.
    OfFrame,
    Other,
}

impl StreamType {
    fn of(id: u64) -> Self {
        match id % 4 {
            0 => Self::Question,
            3 => Self::OfFrame,
            _ => Self::Other,
        }
    }
}

impl<'a> Wire<'a> {
    pub fn new(stream: &'a FrameStream, frames: usize, said: &'a [RequestReport]) -> Self {
        let began = began(stream, said);
        Self {
            stream,
            frames,
            said,
            began,
        }
    }

    /// The first difference between the claim and the client's hop, in words, if there is one.
    pub fn wrong(&self, seen: &DecodedConnection) -> Option<String> {
        let other = self.other_carrier(seen);
        let other = other.or_else(|| self.sent_early(seen));
        let other = other.or_else(|| self.ended_early(seen));
        other.or_else(|| self.reported_early(seen))
    }

    /// A carrier of frames other than the one that was asked for, if there was one.
    fn other_carrier(&self, seen: &DecodedConnection) -> Option<String> {
        let is_wrong = |frame: &Frame| match (self.stream.over, frame) {
            (Carrier::Streams, Frame::Datagram { .. }) => true,
            (Carrier::Datagrams, Frame::Stream { id, .. }) => {
                StreamType::of(*id) == StreamType::OfFrame
            }
            _ => false,
        };
        sent_by(seen, End::Server).find(|(_, frame)| is_wrong(frame))?;
        let [expected, saw] = match self.stream.over {
            Carrier::Streams => ["unidirectional streams", "DATAGRAM frames"],
            Carrier::Datagrams => ["DATAGRAM frames", "unidirectional streams"],
        };
        Some(format!(
            "expected {expected} alone from the server, saw {saw}"
        ))
    }

    /// Whether anything of frames was sent before the first was made by their headers: a clock that
    /// is ahead makes frames young.
    fn sent_early(&self, seen: &DecodedConnection) -> Option<String> {
        let began = self.began?;
        let mut sent = sent_by(seen, End::Server);
        let (at, _) = sent.find(|(_, frame)| is_of_frame(frame))?;
        let ahead = began.checked_sub(at).filter(|it| *it > CLOCKS)?;
        Some(format!(
            "the server sent of its first frame {} before it was made by the frames' headers",
            span(ahead)
        ))
    }

    /// Whether the server ended the stream of the question before the time of the last frame was
    /// over.
    fn ended_early(&self, seen: &DecodedConnection) -> Option<String> {
        let is_question = |id: &u64| StreamType::of(*id) == StreamType::Question;
        let ends =
            |frame: &Frame| matches!(frame, Frame::Stream { id, fin: true, .. } if is_question(id));
        let asks = |frame: &Frame| matches!(frame, Frame::Stream { id, .. } if is_question(id));
        let asked = sent_by(seen, End::Client).find(|(_, frame)| asks(frame));
        let Some((ended, _)) = sent_by(seen, End::Server).find(|(_, frame)| ends(frame)) else {
            return Some("the server did not end the stream of the question".to_owned());
        };
        // Where nothing came, the server made no frame before it was asked.
        let began = self.began.or(asked.map(|(at, _)| at))?;
        let end = began + self.stream.end(self.frames);
        let early = end.checked_sub(ended).filter(|it| *it > CLOCKS)?;
        Some(format!(
            "the server ended the stream of the question {} before the time of the last of {} \
             frames was over",
            span(early),
            self.frames
        ))
    }

    /// Whether more is reported to have come whole by some time than had arrived.
    fn reported_early(&self, seen: &DecodedConnection) -> Option<String> {
        let whole = self.said.iter().filter_map(|it| {
            let at = Duration::from_nanos(it.last_byte_ns?);
            Some((at, it.bytes + HEADER))
        });
        let mut whole: Vec<(Duration, u64)> = whole.collect();
        whole.sort_unstable();
        let mut arrivals = self.arrivals(seen).into_iter().peekable();
        let [mut said, mut arrived] = [0; 2];
        for (at, bytes) in whole {
            said += bytes;
            while let Some((_, bytes)) = arrivals.next_if(|(came, _)| *came <= at + CLOCKS) {
                arrived += bytes;
            }
            if said > arrived {
                return Some(format!(
                    "the client reports whole frames of {said} bytes with their headers by {}, and \
                     {arrived} bytes had arrived",
                    span(at)
                ));
            }
        }
        None
    }

    /// When bytes of frames arrived at the client that had not been there before, and how many, in
    /// order.
    fn arrivals(&self, seen: &DecodedConnection) -> Vec<(Duration, u64)> {
        let connection = &seen.connection;
        if self.stream.over == Carrier::Streams {
            let all = arrivals(connection, End::Server).into_iter();
            return all.map(|(at, bytes)| (time(seen, at), bytes)).collect();
        }
        let own = connection.packets.iter();
        let own = own.filter(|it| it.sender == End::Server && it.fate == Fate::Delivered);
        let bytes = |packet: &Packet| {
            let frames = connection.frames(packet).iter();
            let bytes = frames.map(|frame| match frame {
                Frame::Datagram { length } => u64::from(*length),
                _ => 0,
            });
            bytes.sum::<u64>()
        };
        let all = own.filter_map(|it| Some((time(seen, it.received()?), bytes(it))));
        let mut all: Vec<(Duration, u64)> = all.collect();
        all.sort_unstable();
        all
    }

    /// The frame that a server still sent when its time was over, if there is one. `seen` is on the
    /// server's hop.
    ///
    /// Streams are opened in the order of their frames, and each has one. So the frame of a stream
    /// is none after that which it would be if only frames before it had no stream.
    pub fn outlived(&self, seen: &DecodedConnection) -> Option<String> {
        let began = self.began?;
        let mut last: BTreeMap<u64, Duration> = BTreeMap::new();
        for (at, frame) in sent_by(seen, End::Server) {
            if let Frame::Stream { id, .. } = frame
                && StreamType::of(*id) == StreamType::OfFrame
            {
                last.insert(id / 4, at);
            }
        }
        let streams = last.keys().next_back()? + 1;
        let skipped = (self.frames as u64).saturating_sub(streams);
        last.into_iter().find_map(|(stream, at)| {
            let frame = usize::try_from(stream + skipped).ok()?;
            let over = began + self.stream.made(frame) + self.stream.deadline();
            let late = at.checked_sub(over).filter(|it| *it > LATE)?;
            Some(format!(
                "the server sent of stream {} {} after the time of its frame was over",
                4 * stream + 3,
                span(late)
            ))
        })
    }
}

/// Whether it carries something of a frame, over whatever.
fn is_of_frame(frame: &Frame) -> bool {
    match frame {
        Frame::Datagram { .. } => true,
        Frame::Stream { id, .. } => StreamType::of(*id) == StreamType::OfFrame,
        _ => false,
    }
}

/// A time of a connection in that of the trial.
fn time(seen: &DecodedConnection, at: i64) -> Duration {
    let at = seen.start().as_nanos().saturating_add_signed(at);
    Duration::from_nanos(at)
}

/// The frames that an end sent, each with its time.
fn sent_by(seen: &DecodedConnection, end: End) -> impl Iterator<Item = (Duration, &Frame)> {
    let own = seen.connection.packets.iter();
    let own = own.filter(move |it| it.sender == end && !it.copy);
    own.flat_map(|packet| {
        let at = time(seen, packet.time());
        let frames = seen.connection.frames(packet).iter();
        frames.map(move |frame| (at, frame))
    })
}

#[cfg(test)]
mod tests;
