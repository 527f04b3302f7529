//! Applications at both ends that send and read streams by plan, and what must hold of what they
//! see.

use std::collections::BTreeMap;

use noq_proto::{
    Connection, Dir, Event, ReadError, Side, StreamEvent, StreamId, VarInt, WriteError,
};

use crate::world::Random;

/// The actions of one end on its sending part of a stream, and of the other as its receiver.
#[derive(Debug, Clone)]
pub struct Sending {
    pub bytes: usize,
    /// It resets the stream with this code in place of finishing it.
    pub reset: Option<u32>,
    /// The receiver asks to stop with this code when it has read this many bytes.
    pub stop: Option<(usize, u32)>,
}

/// A stream.
#[derive(Debug, Clone)]
pub struct Plan {
    pub opener: Side,
    pub dir: Dir,
    pub forth: Sending,
    /// The reverse direction of bidirectional streams.
    pub back: Sending,
}

impl Plan {
    /// Both ways, of `bytes` bytes each, opened by the client.
    pub fn both_ways(bytes: usize) -> Self {
        let sending = Sending {
            bytes,
            reset: None,
            stop: None,
        };
        Self {
            opener: Side::Client,
            dir: Dir::Bi,
            forth: sending.clone(),
            back: sending,
        }
    }
}

/// How a stream ended for its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Finished,
    Reset(u64),
    StoppedByMe,
}

/// One end.
pub struct Application {
    side: Side,
    handle: Option<usize>,
    plans: Vec<(StreamId, Plan)>,
    opened: BTreeMap<StreamId, Sent>,
    pub received: BTreeMap<StreamId, Received>,
    /// Streams that the other end has stopped, with their codes.
    pub stopped: BTreeMap<StreamId, u64>,
    pub closed: Option<Event>,
    pub connected: bool,
    /// Reads nothing.
    pub is_slow: bool,
    /// Writes to the streams in the order in which they were opened last; else, in which they were
    /// opened first.
    pub is_backwards: bool,
    random: Random,
}

#[derive(Debug, Default)]
struct Sent {
    bytes: usize,
    ended: bool,
}

#[derive(Debug, Default)]
pub struct Received {
    pub bytes: usize,
    pub end: Option<End>,
}

/// The byte at an offset of a stream's part that `sender` sends: no two parts are alike.
fn byte(id: StreamId, sender: Side, offset: usize) -> u8 {
    let id = u64::from(VarInt::from(id)) * 2 + sender as u64;
    let mixed = (offset as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ (id << 32 | id));
    mixed.to_le_bytes()[4]
}

/// The plans with the IDs that their streams will have.
pub fn number(plans: &[Plan]) -> Vec<(StreamId, Plan)> {
    let mut counts = BTreeMap::new();
    let mut id = |plan: &Plan| {
        let count: &mut u64 = counts
            .entry((plan.opener as u64, plan.dir as u64))
            .or_default();
        *count += 1;
        StreamId::new(plan.opener, plan.dir, *count - 1)
    };
    plans.iter().map(|plan| (id(plan), plan.clone())).collect()
}

impl Application {
    pub fn new(side: Side, plans: &[Plan], seed: u64) -> Self {
        Self {
            side,
            handle: None,
            plans: number(plans),
            opened: BTreeMap::new(),
            received: BTreeMap::new(),
            stopped: BTreeMap::new(),
            closed: None,
            connected: false,
            is_slow: false,
            is_backwards: false,
            random: Random(seed | 1),
        }
    }

    /// Handles events, and goes on with everything.
    pub fn act(&mut self, peer: &mut crate::peer::Peer) {
        while let Some((handle, event)) = peer.events.pop_front() {
            match event {
                // The latest connection counts: one that only measured a path may have been before.
                Event::Connected => {
                    self.handle = Some(handle);
                    self.connected = true;
                    self.closed = None;
                }
                _ if self.handle.is_some_and(|latest| latest != handle) => {}
                Event::ConnectionLost { .. } => self.closed = Some(event),
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    self.stopped.insert(id, error_code.into_inner());
                    if let Some(connection) = peer.connections.get_mut(&handle) {
                        let _ = connection.send_stream(id).reset(error_code);
                    }
                }
                _ => {}
            }
        }
        let handle = self
            .handle
            .filter(|_| self.connected && self.closed.is_none());
        if let Some(handle) = handle
            && let Some(connection) = peer.connections.get_mut(&handle)
        {
            self.open(connection);
            let mut plans = self.plans.clone();
            if self.is_backwards {
                plans.reverse();
            }
            for (id, plan) in plans {
                self.send(connection, id, &plan);
                if !self.is_slow {
                    self.receive(connection, id, &plan);
                }
            }
        }
    }

    fn open(&mut self, connection: &mut Connection) {
        for (id, plan) in &self.plans {
            if plan.opener == self.side
                && !self.opened.contains_key(id)
                && let Some(opened) = connection.streams().open(plan.dir)
            {
                assert_eq!(opened, *id);
                self.opened.insert(opened, Sent::default());
            }
        }
        for dir in [Dir::Bi, Dir::Uni] {
            while let Some(id) = connection.streams().accept(dir) {
                if dir == Dir::Bi {
                    self.opened.insert(id, Sent::default());
                }
            }
        }
    }

    fn send(&mut self, connection: &mut Connection, id: StreamId, plan: &Plan) {
        let sending = if plan.opener == self.side {
            &plan.forth
        } else {
            &plan.back
        };
        let Some(sent) = self.opened.get_mut(&id).filter(|sent| !sent.ended) else {
            return;
        };
        while sent.bytes < sending.bytes {
            let size = 1 + usize::try_from(self.random.below(5000)).unwrap();
            let end = sending.bytes.min(sent.bytes + size);
            let data: Vec<_> = (sent.bytes..end)
                .map(|at| byte(id, self.side, at))
                .collect();
            match connection.send_stream(id).write(&data) {
                Ok(written) => sent.bytes += written,
                Err(WriteError::Blocked) => return,
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    sent.ended = true;
                    return;
                }
            }
        }
        sent.ended = true;
        match sending.reset {
            Some(code) => drop(connection.send_stream(id).reset(code.into())),
            None => drop(connection.send_stream(id).finish()),
        }
    }

    fn receive(&mut self, connection: &mut Connection, id: StreamId, plan: &Plan) {
        let (sending, other) = match (plan.opener == self.side, plan.dir) {
            (true, Dir::Uni) => return,
            (true, Dir::Bi) => (&plan.back, !self.side),
            (false, _) => (&plan.forth, !self.side),
        };
        let received = self.received.entry(id).or_default();
        if received.end.is_some() {
            return;
        }
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        loop {
            if let Some((after, code)) = sending.stop
                && received.bytes >= after
            {
                received.end = Some(End::StoppedByMe);
                let _ = chunks.finalize();
                let _ = stream.stop(code.into());
                return;
            }
            let most = sending
                .stop
                .map_or(usize::MAX, |(after, _)| after - received.bytes);
            match chunks.next(most) {
                Ok(Some(chunk)) => {
                    for (index, value) in chunk.bytes.iter().enumerate() {
                        let at = received.bytes + index;
                        assert_eq!(*value, byte(id, other, at), "{id} from {other:?} at {at}");
                    }
                    received.bytes += chunk.bytes.len();
                }
                Ok(None) => received.end = Some(End::Finished),
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => {
                    received.end = Some(End::Reset(code.into_inner()));
                }
            }
            if received.end.is_some() {
                break;
            }
        }
        let _ = chunks.finalize();
    }

    /// Whether all streams have ended that it receives, and those that it sends are over.
    pub fn is_done(&self) -> bool {
        self.plans.iter().all(|(id, plan)| {
            let is_opener = plan.opener == self.side;
            let receives = !is_opener || plan.dir == Dir::Bi;
            let sends = is_opener || plan.dir == Dir::Bi;
            let ended = self.received.get(id).is_some_and(|it| it.end.is_some());
            let sent = self.opened.get(id).is_some_and(|it| it.ended);
            (!receives || ended) && (!sends || sent)
        })
    }

    /// Checks all that was received.
    pub fn check(&self) {
        for (id, plan) in &self.plans {
            let sending = match (plan.opener == self.side, plan.dir) {
                (true, Dir::Uni) => continue,
                (true, Dir::Bi) => &plan.back,
                (false, _) => &plan.forth,
            };
            let received = &self.received[id];
            match received.end.expect("the stream has ended") {
                End::Finished => {
                    assert_eq!(sending.reset, None, "{id}: a reset became an end");
                    assert_eq!(received.bytes, sending.bytes, "{id}");
                }
                End::Reset(code) => {
                    let codes = [sending.reset, sending.stop.map(|(_, code)| code)];
                    let codes = codes.into_iter().flatten().map(u64::from);
                    assert!(
                        codes.into_iter().any(|it| it == code),
                        "{id}: reset with {code}"
                    );
                }
                End::StoppedByMe => assert!(received.bytes <= sending.bytes),
            }
        }
        for (id, code) in &self.stopped {
            let (_, plan) = self.plans.iter().find(|(it, _)| it == id).unwrap();
            let sending = if plan.opener == self.side {
                &plan.forth
            } else {
                &plan.back
            };
            let wanted = sending.stop.expect("nobody else asks to stop").1;
            assert_eq!(*code, u64::from(wanted), "{id}");
        }
    }
}
