//! The streams of a connection in one direction: what comes on one connection goes out on the
//! other, under the same stream IDs.
//!
//! What the other side does not take yet is kept up to a limit; beyond it the data stay in the
//! library, and flow control holds the peer back. A stream that holds nothing may always take one
//! piece, so that streams that nobody reads do not stop those that could go on.

use std::collections::{BTreeMap, BTreeSet};

use noq_proto::{Connection, Dir, Side as Initiator, StreamId, VarInt};

use super::ends::RelayEnds;
use super::stream::{StreamProgress, StreamRelay};
use super::stream_opener::StreamOpener;
use crate::config::SideConfig;
use crate::limits::Limits;

/// The bytes that may be buffered.
struct BufferLimits {
    /// The limit of one stream.
    stream: usize,
    /// The limit of all streams of this direction.
    connection: usize,
}

/// The relay of all streams of a connection in one direction.
pub struct DirectionRelay {
    limits: BufferLimits,
    /// Opens the streams of the end that data come from.
    opener: StreamOpener,
    streams: BTreeMap<StreamId, StreamRelay>,
    /// Bidirectional streams that the end opened that data go to, and that were never opened
    /// towards the one that they come from, which is gone.
    unanswered: usize,
    /// The bytes that all streams hold.
    held: usize,
    /// Left unread because all streams together held too much.
    full: BTreeSet<StreamId>,
    /// Left unread because a gap stays open while the stream's buffer is used up.
    with_gap: BTreeSet<StreamId>,
    /// Bytes written so far.
    pub carried: u64,
}

impl DirectionRelay {
    /// `source` is the end of the whole connection that data come from, `side` the proxy's towards
    /// it.
    pub fn new(source: Initiator, side: &SideConfig, limits: &Limits) -> Self {
        Self {
            limits: BufferLimits {
                stream: limits.stream_buffer,
                connection: limits.connection_buffer,
            },
            opener: StreamOpener::new(source, side, limits),
            streams: BTreeMap::new(),
            unanswered: 0,
            held: 0,
            full: BTreeSet::new(),
            with_gap: BTreeSet::new(),
            carried: 0,
        }
    }

    /// Bytes that were taken out of one side and not yet by the other.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Streams that are under way in this direction.
    pub fn count(&self) -> usize {
        self.streams.len()
    }

    /// Streams that wait for the other side to allow them.
    pub fn waiting(&self) -> u64 {
        self.opener.waiting()
    }

    /// Whether anything has come.
    pub fn has_data(&self) -> bool {
        !self.streams.is_empty() || self.waiting() > 0
    }

    /// Whether a peer leaves gaps open although the buffer is full.
    pub fn has_open_gap(&self) -> bool {
        !self.with_gap.is_empty()
    }

    /// Where it does.
    pub fn gaps(&self) -> BTreeSet<(StreamId, u64)> {
        let gap = |id: &StreamId| Some((*id, self.streams.get(id)?.pieces.next()));
        self.with_gap.iter().filter_map(gap).collect()
    }

    /// Opens towards `to` what has been opened towards `from`, in order, as far as `to` allows it.
    /// `back` is the other direction.
    pub fn open(&mut self, back: &mut Self, ends: &mut RelayEnds<'_>) {
        if let Some(from) = &mut ends.from {
            self.opener.accept(from);
        }
        for dir in [Dir::Bi, Dir::Uni] {
            while let Some(id) = self.opener.open(ends.to, dir) {
                self.streams.entry(id).or_default();
                if dir == Dir::Bi {
                    back.answer(ends, id);
                }
                self.carry(ends, id);
            }
        }
    }

    /// Lets the peer that data come from open what the other side allows; whether something new is
    /// to be sent to it.
    pub fn allow(&mut self, from: &mut Connection, to: &mut Connection) -> bool {
        self.opener.allow(from, to)
    }

    /// Begins what goes back on a stream; `ends` are of the direction that it was opened in.
    fn answer(&mut self, ends: &mut RelayEnds<'_>, id: StreamId) {
        self.streams.insert(id, StreamRelay::default());
        // The peer's STOP_SENDING may have been the first frame of the stream.
        if let Some(from) = &mut ends.from
            && let Ok(Some(code)) = from.send_stream(id).stopped()
        {
            self.stop(&mut RelayEnds::between(ends.to, from), id, code);
        }
    }

    /// Whether a stream is known on both sides.
    pub fn is_open(&self, id: StreamId) -> bool {
        self.opener.is_open(id)
    }

    /// Hands on what there is of a stream.
    pub fn carry(&mut self, ends: &mut RelayEnds<'_>, id: StreamId) {
        if let Some(held) = self.carry_one(ends, id)
            && self.held < self.limits.connection
            && held >= self.limits.connection
        {
            self.go_on(ends);
        }
    }

    /// Goes on with streams that were left unread, when there is buffer again.
    fn go_on(&mut self, ends: &mut RelayEnds<'_>) {
        let mut left = std::mem::take(&mut self.full);
        while self.held < self.limits.connection
            && let Some(id) = left.pop_first()
        {
            self.carry_one(ends, id);
        }
        self.full.append(&mut left);
    }

    /// Relays one stream; returns the bytes that all streams held before. `None`: there is no such
    /// stream.
    fn carry_one(&mut self, ends: &mut RelayEnds<'_>, id: StreamId) -> Option<usize> {
        let before = self.held;
        if !self.is_open(id) {
            return None;
        }
        let stream = self.streams.get_mut(&id)?;
        let others = self.held - stream.held();
        let capacity = self.limits.connection.saturating_sub(others);
        let mut carried = 0;
        let outcome = stream.carry(ends, id, capacity.min(self.limits.stream), &mut carried);
        let held = stream.held();
        self.carried += carried;
        self.held = others + held;
        self.full.remove(&id);
        self.with_gap.remove(&id);
        match outcome {
            StreamProgress::Open => {}
            StreamProgress::BufferFull { has_gap } => {
                if has_gap {
                    self.with_gap.insert(id);
                }
                if held < self.limits.stream {
                    self.full.insert(id);
                }
            }
            StreamProgress::Done => self.forget(id),
            StreamProgress::Stopped(code) => self.stop(ends, id, code),
        }
        Some(before)
    }

    /// Hands on what there is of all streams.
    pub fn carry_all(&mut self, ends: &mut RelayEnds<'_>) {
        let ids: Vec<_> = self.streams.keys().copied().collect();
        for id in ids {
            self.carry_one(ends, id);
        }
    }

    /// The other side wants no more of a stream.
    pub fn stop(&mut self, ends: &mut RelayEnds<'_>, id: StreamId, code: VarInt) {
        if let Some(from) = &mut ends.from {
            // One that has ended needs no stop.
            let _ = from.recv_stream(id).stop(code);
        }
        let _ = ends.to.send_stream(id).reset(code);
        self.forget(id);
    }

    fn forget(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.remove(&id) {
            self.held -= stream.held();
        }
        self.full.remove(&id);
        self.with_gap.remove(&id);
    }

    /// Takes out all that has come, whatever the limits: `from` is going away.
    pub fn read_remaining(&mut self, from: &mut Connection) {
        self.opener.accept(from);
        for id in self.opener.waiting_ids() {
            self.streams.entry(id).or_default();
        }
        self.held = 0;
        for (id, stream) in &mut self.streams {
            stream.read_all(from, *id);
            self.held += stream.held();
        }
        self.full.clear();
        self.with_gap.clear();
    }

    /// Gives up what there is: the end that it goes to is gone. `back` is the other direction.
    pub fn clear(&mut self, back: &mut Self) {
        back.unanswered = self.opener.give_up();
        self.streams.clear();
        self.held = 0;
        self.full.clear();
        self.with_gap.clear();
    }

    /// Whether the peer of `to` has acknowledged all that came from the side that has gone away.
    pub fn is_delivered(&self, to: &mut Connection) -> bool {
        if self.waiting() > 0 || self.held > 0 {
            return false;
        }
        // Whatever has ended is acknowledged, if what has no end is all that there is.
        if to.streams().send_streams() != self.streams.len() + self.unanswered {
            return false;
        }
        // The library does not say what is unacknowledged of a stream that has no end; but it
        // blocks writing as long as there is more of it than it may hold.
        let Some(id) = self.streams.keys().next() else {
            return true;
        };
        to.set_send_window(1);
        to.send_stream(*id).write(&[]).is_ok()
    }
}
