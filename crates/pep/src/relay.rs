//! Streams in one direction: what comes on one connection goes out on the other, under the same stream IDs.
//!
//! Data are read as they come and put into their order here: in order, the library gives up a connection whose stream has more than 1024 gaps
//! (`docs/upstream/gaps.md`). They are written at once. What the other side does not take yet is kept up to a limit; beyond it the
//! data stay in the library, and flow control holds the peer back.
//!
//! A stream that holds nothing may always take one piece, so that streams that wait do not stop those that could go on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bentpipe_endpoint::Reassembly;
use bytes::Bytes;
use noq_proto::{Connection, Dir, FinishError, ReadError, Side, StreamId, VarInt, WriteError};

use crate::closing::Code;

/// Read at once: what was merged in the library while it waited may be as large as the window.
const LARGEST_PIECE: usize = 1 << 16;

/// What may wait.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Of a stream.
    pub stream: usize,
    /// Of all streams of this direction.
    pub connection: usize,
}

/// The streams in one direction.
pub struct Relay {
    /// Which end of the whole connection data come from.
    source: Side,
    room: Room,
    flows: BTreeMap<StreamId, Flow>,
    /// Streams of that end that have been opened towards the other.
    opened: [u64; 2],
    /// Opened by the peer that they come from, and not yet towards the other, which does not allow more; in order.
    waiting: [VecDeque<StreamId>; 2],
    /// What all flows hold.
    held: usize,
    /// Left unread because all flows together held too much.
    full: BTreeSet<StreamId>,
    /// Left unread because a gap stays open while the stream's room is used up.
    gaping: BTreeSet<StreamId>,
    /// Bytes written so far.
    pub carried: u64,
}

/// One direction of a stream.
#[derive(Default)]
struct Flow {
    pieces: Reassembly,
    /// Of the piece that was written in part.
    rest: Bytes,
    end: Option<End>,
}

/// How a stream ended where it came from.
#[derive(Debug, Clone, Copy)]
enum End {
    Finished,
    Reset(VarInt),
}

/// Where carrying a flow came to.
enum Outcome {
    /// More may come, or more may be taken later.
    Open,
    /// What there is cannot be read because of the room that is left.
    Full {
        /// It waits for bytes that have not come, not for the other side.
        gaping: bool,
    },
    /// All is handed over, and so is the end.
    Done,
    /// The other side wants no more.
    Stopped(VarInt),
}

impl Relay {
    pub fn new(source: Side, room: Room) -> Self {
        Self {
            source,
            room,
            flows: BTreeMap::new(),
            opened: [0, 0],
            waiting: Default::default(),
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

    /// Whether anything has come.
    pub fn has_cargo(&self) -> bool {
        !self.flows.is_empty() || self.waiting.iter().any(|waiting| !waiting.is_empty())
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
    pub fn open(&mut self, back: &mut Self, ends: &mut Ends<'_>, dir: Dir) {
        loop {
            self.accept(ends, dir, 1);
            let Some(&id) = self.waiting[dir as usize].front() else {
                return;
            };
            let Some(opened) = ends.to.streams().open(dir) else {
                return;
            };
            assert_eq!(opened, id, "both sides count their streams alike");
            self.waiting[dir as usize].pop_front();
            self.opened[dir as usize] = id.index() + 1;
            self.flows.entry(id).or_default();
            if dir == Dir::Bi {
                back.flows.insert(id, Flow::default());
                // It may have been the first that was heard of the stream.
                if let Some(from) = &mut ends.from
                    && let Ok(Some(code)) = from.send_stream(id).stopped()
                {
                    back.stop(&mut Ends::between(ends.to, from), id, code);
                }
            }
            self.carry(ends, id);
        }
    }

    /// Takes up to `most` streams that the peer has opened, beyond those that wait.
    fn accept(&mut self, ends: &mut Ends<'_>, dir: Dir, most: usize) {
        let Some(from) = &mut ends.from else { return };
        while self.waiting[dir as usize].len() < most
            && let Some(id) = from.streams().accept(dir)
        {
            self.waiting[dir as usize].push_back(id);
        }
    }

    /// Whether a stream is known on both sides; those that the receiving end opens always are.
    pub fn is_open(&self, id: StreamId) -> bool {
        id.initiator() != self.source || id.index() < self.opened[id.dir() as usize]
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
        for dir in [Dir::Bi, Dir::Uni] {
            while let Some(id) = from.streams().accept(dir) {
                self.waiting[dir as usize].push_back(id);
            }
            let waiting = self.waiting[dir as usize].iter();
            for id in waiting {
                self.flows.entry(*id).or_default();
            }
        }
        self.held = 0;
        for (id, flow) in &mut self.flows {
            flow.read_all(from, *id);
            self.held += flow.held();
        }
        self.full.clear();
        self.gaping.clear();
    }

    /// Gives up what there is.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.waiting = Default::default();
        self.held = 0;
        self.full.clear();
        self.gaping.clear();
    }

    /// Whether the peer of `to` has acknowledged all that came from the side that has gone away.
    pub fn is_delivered(&self, to: &mut Connection) -> bool {
        let unopened = self.waiting.iter().any(|waiting| !waiting.is_empty());
        if unopened || self.held > 0 {
            return false;
        }
        // Whatever has ended is acknowledged, if what has no end is all that there is.
        if to.streams().send_streams() != self.flows.len() {
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

impl Flow {
    fn held(&self) -> usize {
        self.pieces.occupied() + self.rest.len()
    }

    fn carry(
        &mut self,
        ends: &mut Ends<'_>,
        id: StreamId,
        room: usize,
        carried: &mut u64,
    ) -> Outcome {
        let mut full = None;
        let mut taken = self.write(ends.to, id, carried);
        if let (Ok(_), Some(from), None) = (taken, &mut ends.from, self.end)
            && let Ok(mut chunks) = from.recv_stream(id).read(false)
        {
            while let Ok(all) = taken {
                // A piece of no length says what comes next, and leaves it there.
                let is_full = self.held() > 0 && self.held() >= room;
                let most = if is_full { 0 } else { LARGEST_PIECE };
                let chunk = match chunks.next(most) {
                    Ok(Some(chunk)) if !is_full => chunk,
                    Ok(Some(next)) if all && next.offset == self.pieces.next() => {
                        match chunks.next(LARGEST_PIECE) {
                            Ok(Some(chunk)) => chunk,
                            _ => break,
                        }
                    }
                    Ok(Some(_)) => {
                        full = Some(Outcome::Full { gaping: all });
                        break;
                    }
                    other => {
                        self.end = end(other.err().as_ref());
                        break;
                    }
                };
                self.take(chunk);
                if self.end.is_some() {
                    break;
                }
                taken = self.write(ends.to, id, carried);
            }
            // Whether flow control credit is to be sent, the next poll finds out by itself.
            let _ = chunks.finalize();
        }
        match (taken, self.end) {
            (Err(code), _) => Outcome::Stopped(code),
            (Ok(_), Some(End::Reset(code))) => {
                // One that was stopped has been reset already.
                let _ = ends.to.send_stream(id).reset(code);
                Outcome::Done
            }
            (Ok(true), Some(End::Finished)) => match ends.to.send_stream(id).finish() {
                Ok(()) | Err(FinishError::ClosedStream) => Outcome::Done,
                Err(FinishError::Stopped(code)) => Outcome::Stopped(code),
            },
            _ => full.unwrap_or(Outcome::Open),
        }
    }

    fn take(&mut self, chunk: noq_proto::Chunk) {
        // There is room for what limits allow; a window may have been asked for that is larger. What cannot be kept must not be missing unnoticed.
        if self.pieces.insert(chunk.offset, chunk.bytes).is_err() {
            let code = VarInt::try_from(Code::Buffer.value()).unwrap_or(VarInt::MAX);
            self.end = Some(End::Reset(code));
        }
    }

    /// Writes what there is in order; whether all of that was taken, or with which code the peer stopped the stream.
    fn write(
        &mut self,
        to: &mut Connection,
        id: StreamId,
        carried: &mut u64,
    ) -> Result<bool, VarInt> {
        loop {
            if self.rest.is_empty() {
                match self.pieces.pop() {
                    Some(piece) => self.rest = piece,
                    None => return Ok(true),
                }
            }
            let pieces = &mut std::slice::from_mut(&mut self.rest);
            match to.send_stream(id).write_chunks(pieces) {
                Ok(bytes) => *carried += bytes as u64,
                Err(WriteError::Blocked) => return Ok(false),
                Err(WriteError::Stopped(code)) => return Err(code),
                Err(WriteError::ClosedStream) => return Err(VarInt::from_u32(0)),
            }
        }
    }

    fn read_all(&mut self, from: &mut Connection, id: StreamId) {
        if self.end.is_some() {
            return;
        }
        let mut receiver = from.recv_stream(id);
        let Ok(mut chunks) = receiver.read(false) else {
            return;
        };
        self.end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    self.take(chunk);
                    if self.end.is_some() {
                        break self.end;
                    }
                }
                other => break end(other.err().as_ref()),
            }
        };
        let _ = chunks.finalize();
    }
}

/// What it means that there is no further piece.
fn end(error: Option<&ReadError>) -> Option<End> {
    match error {
        None => Some(End::Finished),
        Some(ReadError::Reset(code)) => Some(End::Reset(*code)),
        Some(ReadError::Blocked) => None,
    }
}
