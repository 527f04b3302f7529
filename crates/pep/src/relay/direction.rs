//! Streams in one direction: what comes on one connection goes out on the other, under the same stream IDs.
//!
//! What the other side does not take yet is kept up to a limit; beyond it the data stay in the library, and flow control holds the peer back.
//! A stream that holds nothing may always take one piece, so that streams that nobody reads do not stop those that could go on.

use std::collections::{BTreeMap, BTreeSet};

use noq_proto::{Connection, Dir, Side, StreamId, VarInt};

use crate::config::{Hop, Limits};
use crate::relay::stream::{Flow, Outcome};
use crate::relay::stream_opener::Opening;

/// What may wait.
struct Room {
    /// Of a stream.
    stream: usize,
    /// Of all streams of this direction.
    connection: usize,
}

/// The streams in one direction.
pub struct Relay {
    room: Room,
    /// Streams that the end opens that data come from.
    opening: Opening,
    flows: BTreeMap<StreamId, Flow>,
    /// Bidirectional streams that the end opened that data go to, and that were never opened towards the one that they come from, which is gone.
    unanswered: usize,
    /// What all flows hold.
    held: usize,
    /// Left unread because all flows together held too much.
    full: BTreeSet<StreamId>,
    /// Left unread because a gap stays open while the stream's room is used up.
    gaping: BTreeSet<StreamId>,
    /// Bytes written so far.
    pub carried: u64,
}

impl Relay {
    /// `source` is the end of the whole connection that data come from, `hop` the proxy's side towards it.
    pub fn new(source: Side, hop: &Hop, limits: &Limits) -> Self {
        Self {
            room: Room {
                stream: limits.stream_buffer,
                connection: limits.connection_buffer,
            },
            opening: Opening::new(source, hop, limits),
            flows: BTreeMap::new(),
            unanswered: 0,
            held: 0,
            full: BTreeSet::new(),
            gaping: BTreeSet::new(),
            carried: 0,
        }
    }

    /// Bytes that were taken out of one side and not yet by the other.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Streams that are under way in this direction.
    pub fn count(&self) -> usize {
        self.flows.len()
    }

    /// Streams that wait for the other side to allow them.
    pub fn waiting(&self) -> u64 {
        self.opening.waiting()
    }

    /// Whether anything has come.
    pub fn has_cargo(&self) -> bool {
        !self.flows.is_empty() || self.waiting() > 0
    }

    /// Whether a peer leaves gaps open although there is no more room.
    pub fn is_gaping(&self) -> bool {
        !self.gaping.is_empty()
    }

    /// Where it does.
    pub fn gaps(&self) -> BTreeSet<(StreamId, u64)> {
        let gap = |id: &StreamId| Some((*id, self.flows.get(id)?.pieces.next()));
        self.gaping.iter().filter_map(gap).collect()
    }

    /// Opens towards `to` what has been opened towards `from`, in order, as far as `to` allows it. `back` is the other direction.
    pub fn open(&mut self, back: &mut Self, ends: &mut Ends<'_>) {
        if let Some(from) = &mut ends.from {
            self.opening.accept(from);
        }
        for dir in [Dir::Bi, Dir::Uni] {
            while let Some(id) = self.opening.open(ends.to, dir) {
                self.flows.entry(id).or_default();
                if dir == Dir::Bi {
                    back.answer(ends, id);
                }
                self.carry(ends, id);
            }
        }
    }

    /// Lets the peer that data come from open what the other side allows; whether it is to be told anything new.
    pub fn allow(&mut self, from: &mut Connection, to: &mut Connection) -> bool {
        self.opening.allow(from, to)
    }

    /// Begins what goes back on a stream; `ends` are of the direction that it was opened in.
    fn answer(&mut self, ends: &mut Ends<'_>, id: StreamId) {
        self.flows.insert(id, Flow::default());
        // That nothing is to go back may have been the first that was heard of the stream.
        if let Some(from) = &mut ends.from
            && let Ok(Some(code)) = from.send_stream(id).stopped()
        {
            self.stop(&mut Ends::between(ends.to, from), id, code);
        }
    }

    /// Whether a stream is known on both sides.
    pub fn is_open(&self, id: StreamId) -> bool {
        self.opening.is_open(id)
    }

    /// Hands on what there is of a stream.
    pub fn carry(&mut self, ends: &mut Ends<'_>, id: StreamId) {
        if let Some(held) = self.carry_one(ends, id)
            && self.held < self.room.connection
            && held >= self.room.connection
        {
            self.go_on(ends);
        }
    }

    /// There is room again for streams that were left.
    fn go_on(&mut self, ends: &mut Ends<'_>) {
        let mut left = std::mem::take(&mut self.full);
        while self.held < self.room.connection
            && let Some(id) = left.pop_first()
        {
            self.carry_one(ends, id);
        }
        self.full.append(&mut left);
    }

    /// What all flows held before; `None`: there is no such stream.
    fn carry_one(&mut self, ends: &mut Ends<'_>, id: StreamId) -> Option<usize> {
        let before = self.held;
        if !self.is_open(id) {
            return None;
        }
        let flow = self.flows.get_mut(&id)?;
        let others = self.held - flow.held();
        let room = self.room.connection.saturating_sub(others);
        let mut carried = 0;
        let outcome = flow.carry(ends, id, room.min(self.room.stream), &mut carried);
        let held = flow.held();
        self.carried += carried;
        self.held = others + held;
        self.full.remove(&id);
        self.gaping.remove(&id);
        match outcome {
            Outcome::Open => {}
            Outcome::Full { gaping } => {
                if gaping {
                    self.gaping.insert(id);
                }
                if held < self.room.stream {
                    self.full.insert(id);
                }
            }
            Outcome::Done => self.forget(id),
            Outcome::Stopped(code) => self.stop(ends, id, code),
        }
        Some(before)
    }

    /// Hands on what there is of all streams.
    pub fn carry_all(&mut self, ends: &mut Ends<'_>) {
        let ids: Vec<_> = self.flows.keys().copied().collect();
        for id in ids {
            self.carry_one(ends, id);
        }
    }

    /// The other side wants no more of a stream.
    pub fn stop(&mut self, ends: &mut Ends<'_>, id: StreamId, code: VarInt) {
        if let Some(from) = &mut ends.from {
            // One that has ended needs no stop.
            let _ = from.recv_stream(id).stop(code);
        }
        let _ = ends.to.send_stream(id).reset(code);
        self.forget(id);
    }

    fn forget(&mut self, id: StreamId) {
        if let Some(flow) = self.flows.remove(&id) {
            self.held -= flow.held();
        }
        self.full.remove(&id);
        self.gaping.remove(&id);
    }

    /// Takes out all that has come, whatever the room: `from` is going away.
    pub fn salvage(&mut self, from: &mut Connection) {
        self.opening.accept(from);
        for id in self.opening.waiting_ids() {
            self.flows.entry(id).or_default();
        }
        self.held = 0;
        for (id, flow) in &mut self.flows {
            flow.read_all(from, *id);
            self.held += flow.held();
        }
        self.full.clear();
        self.gaping.clear();
    }

    /// Gives up what there is: the end that it goes to is gone. `back` is the other direction.
    pub fn clear(&mut self, back: &mut Self) {
        back.unanswered = self.opening.give_up();
        self.flows.clear();
        self.held = 0;
        self.full.clear();
        self.gaping.clear();
    }

    /// Whether the peer of `to` has acknowledged all that came from the side that has gone away.
    pub fn is_delivered(&self, to: &mut Connection) -> bool {
        if self.waiting() > 0 || self.held > 0 {
            return false;
        }
        // Whatever has ended is acknowledged, if what has no end is all that there is.
        if to.streams().send_streams() != self.flows.len() + self.unanswered {
            return false;
        }
        // The library does not say what is unacknowledged of a stream that has no end; but it blocks writing as long as there is more
        // of it than it may hold.
        let Some(id) = self.flows.keys().next() else {
            return true;
        };
        to.set_send_window(1);
        to.send_stream(*id).write(&[]).is_ok()
    }
}

/// The two connections that a direction leads from and to.
pub struct Ends<'a> {
    /// `None`: it has ended.
    pub from: Option<&'a mut Connection>,
    pub to: &'a mut Connection,
}

impl<'a> Ends<'a> {
    pub fn between(from: &'a mut Connection, to: &'a mut Connection) -> Self {
        Self {
            from: Some(from),
            to,
        }
    }
}
