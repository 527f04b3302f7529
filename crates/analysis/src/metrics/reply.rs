//! The stream data of one end, as far as they arrived.
//!
//! Of the server, the reply counts: what it sent on streams that the client opened for both ways
//! (RFC 9000 section 2.1). hq-interop and HTTP/3 reply on these; what HTTP/3 sends beside on
//! streams of the server's own (control, QPACK) is no reply. Only if the server sent nothing on the
//! client's streams do its own count. Of the client, all its streams do.
//!
//! A packet counts as arrived unless it is known to be lost. Where the far side was not captured,
//! it counts as lost if the rules of loss recovery took it for lost and no acknowledgement came
//! later.

use std::collections::HashMap;

use crate::connection::{Connection, Fate, Frame, Nanos, Packet};
use crate::intervals::Intervals;
use crate::ledger::LedgerEntry;
use bentpipe_wire::quic::End;

/// The marks of a reply, in million bytes.
const MARKS_MB: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/// The stream data of one end.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// Distinct bytes that arrived.
    pub bytes: u64,
    /// The time at which the first packet with some of them passed.
    pub first: Option<Nanos>,
    /// The time at which the last that had been missing passed, if everything arrived, to the end
    /// of every stream.
    pub last: Option<Nanos>,
    /// The time at which the last of the client's streams for both ways ended, if all did.
    pub ended: Option<Nanos>,
    /// The times at which the bytes up to each mark that was reached were there, none of them
    /// missing. Empty where there are several streams.
    pub marks: Vec<Nanos>,
    /// The times at which bytes could be read, none before them in their stream missing, each with
    /// their number, in order of time.
    pub in_order: Vec<(Nanos, u64)>,
}

/// One stream, as far as it arrived.
#[derive(Debug, Default)]
struct Stream {
    arrived: Intervals,
    first: Option<Nanos>,
    last: Option<Nanos>,
    /// From the FIN.
    final_size: Option<u64>,
    /// When the FIN first passed.
    fin: Option<Nanos>,
    marks: Vec<Nanos>,
    in_order: Vec<(Nanos, u64)>,
}

impl Reply {
    /// The replies of the client and of the server. Files are looked at where they arrive, and
    /// replies at the client.
    pub(super) fn both(
        connection: &Connection,
        entries: &[LedgerEntry],
        files_from: End,
    ) -> [Self; 2] {
        let places = [files_from.other(), End::Client];
        [End::Client, End::Server].map(|end| {
            let place = places[end as usize];
            Self::of(connection, entries, end, place)
        })
    }

    /// The same on an axis that began `offset` earlier.
    pub(super) fn later(self, offset: Nanos) -> Self {
        let later = |time: Option<Nanos>| Some(time? + offset);
        Self {
            bytes: self.bytes,
            first: later(self.first),
            last: later(self.last),
            ended: later(self.ended),
            marks: self.marks.into_iter().map(|time| time + offset).collect(),
            in_order: (self.in_order.into_iter())
                .map(|(time, bytes)| (time + offset, bytes))
                .collect(),
        }
    }

    /// The times since `start` at which bytes could be read, each with their number.
    pub(super) fn since(&self, start: Nanos) -> Vec<(Nanos, u64)> {
        let since = |(time, bytes): &(Nanos, u64)| (time - start, *bytes);
        self.in_order.iter().map(since).collect()
    }

    /// With that of another connection.
    pub(super) fn joined(&self, other: &Self) -> Self {
        let mut in_order = [&self.in_order[..], &other.in_order[..]].concat();
        in_order.sort_by_key(|(time, _)| *time);
        Self {
            in_order,
            marks: Vec::new(),
            bytes: self.bytes + other.bytes,
            first: earliest(self.first, other.first),
            last: latest_of_both(self.last, other.last),
            ended: latest_of_both(self.ended, other.ended),
        }
    }

    /// The data that `sender` sent, with times at `place`.
    fn of(connection: &Connection, entries: &[LedgerEntry], sender: End, place: End) -> Self {
        let mut streams = arrived(connection, entries, sender, place);
        let is_for_reply = |id: u64| id.is_multiple_of(4);
        let mut ends = streams.iter().filter(|(id, _)| is_for_reply(**id));
        let ended = ends.try_fold(None, |latest, (_, it)| Some(latest.max(Some(it.ended()?))));
        let mut with_data = streams.iter().filter(|(_, it)| it.first.is_some());
        if sender == End::Server && with_data.any(|(id, _)| is_for_reply(*id)) {
            // With those on which the reply has not begun.
            streams.retain(|id, _| is_for_reply(*id));
        } else {
            streams.retain(|_, stream| stream.first.is_some());
        }
        let is_complete = streams.values().all(Stream::is_complete);
        let mut in_order: Vec<_> = (streams.values())
            .flat_map(|it| it.in_order.iter().copied())
            .collect();
        in_order.sort_unstable();
        let last = streams.values().filter_map(|it| it.last).max();
        let mut each = streams.values();
        let only = each.next().filter(|_| each.next().is_none());
        Self {
            in_order,
            marks: only.map(|it| it.marks.clone()).unwrap_or_default(),
            bytes: streams.values().map(|it| it.arrived.sum()).sum(),
            first: streams.values().filter_map(|it| it.first).min(),
            last: last.filter(|_| is_complete),
            ended: ended.flatten(),
        }
    }
}

/// The earlier time of two connections, of which either may have none.
pub(super) fn earliest(one: Option<Nanos>, other: Option<Nanos>) -> Option<Nanos> {
    one.into_iter().chain(other).min()
}

/// The later time of two connections, if both have one.
pub(super) fn latest_of_both(one: Option<Nanos>, other: Option<Nanos>) -> Option<Nanos> {
    one.zip(other).map(|(one, other)| one.max(other))
}

/// The streams of a connection, with what arrived of the data of `sender`.
fn arrived(
    connection: &Connection,
    entries: &[LedgerEntry],
    sender: End,
    place: End,
) -> HashMap<u64, Stream> {
    let mut streams: HashMap<u64, Stream> = HashMap::new();
    // Packets are in the order in which they were sent; arrivals count in theirs.
    let mut arrivals: Vec<(Nanos, &Packet)> = Vec::new();
    for (packet, entry) in connection.packets.iter().zip(entries) {
        if packet.sender == sender {
            let time = connection
                .seen_at(packet, place)
                .filter(|_| !is_lost(packet, entry));
            arrivals.extend(time.map(|time| (time, packet)));
        } else {
            for id in connection.frames(packet).iter().filter_map(stream_id) {
                streams.entry(id).or_default();
            }
        }
    }
    arrivals.sort_by_key(|(time, _)| *time);
    for (time, packet) in arrivals {
        for frame in connection.frames(packet) {
            if let Some(id) = stream_id(frame) {
                streams.entry(id).or_default().take(frame, time);
            }
        }
    }
    streams
}

fn stream_id(frame: &Frame) -> Option<u64> {
    match frame {
        Frame::Stream { id, .. } => Some(*id),
        _ => None,
    }
}

fn is_lost(packet: &Packet, entry: &LedgerEntry) -> bool {
    match packet.fate {
        Fate::Delivered => false,
        Fate::QueueDrop | Fate::Loss | Fate::NotReceived => true,
        Fate::Unknown => entry.declared_lost.is_some() && !entry.acked.is_some(),
    }
}

impl Stream {
    fn take(&mut self, frame: &Frame, time: Nanos) {
        let Frame::Stream {
            offset,
            length,
            fin,
            ..
        } = frame
        else {
            return;
        };
        let end = offset.saturating_add(u64::from(*length));
        let before = self.arrived.contiguous();
        if *fin {
            self.final_size = Some(end);
            self.fin.get_or_insert(time);
        }
        if self.arrived.add(*offset..end) > 0 {
            self.first.get_or_insert(time);
            self.last = Some(time);
            let whole = self.arrived.contiguous();
            let reached = |mark: &&u64| **mark * 1_000_000 <= whole;
            let count = MARKS_MB.iter().take_while(reached).count();
            self.marks.resize(count.max(self.marks.len()), time);
            if whole > before {
                self.in_order.push((time, whole - before));
            }
        }
    }

    /// When everything was there, the FIN included.
    fn ended(&self) -> Option<Nanos> {
        self.fin.max(self.last).filter(|_| self.is_complete())
    }

    fn is_complete(&self) -> bool {
        self.final_size == Some(self.arrived.contiguous())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_reached_when_no_byte_before_it_is_missing() {
        let mut stream = Stream::default();
        let mut take = |offset: u64, length, time| {
            let frame = Frame::Stream {
                id: 0,
                offset,
                length,
                fin: false,
            };
            stream.take(&frame, time);
            stream.marks.clone()
        };
        assert_eq!(take(0, 900_000, 10), []);
        assert_eq!(take(1_000_000, 1_500_000, 20), [], "there is a gap");
        assert_eq!(
            take(900_000, 100_000, 30),
            [30, 30],
            "one and two megabytes"
        );
        assert_eq!(take(900_000, 100_000, 40), [30, 30], "it is there already");
        assert_eq!(take(2_500_000, 2_500_000, 50), [30, 30, 50]);
        let readable = [(10, 900_000), (30, 1_600_000), (50, 2_500_000)];
        assert_eq!(stream.in_order, readable);
    }
}
