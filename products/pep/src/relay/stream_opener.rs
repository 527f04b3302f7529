//! Streams that one side opens, and that are opened towards the other in the same order, as far as
//! that allows it.
//!
//! A peer may open as many as the other side allows, and gets more when that allows more. So a
//! stream does not wait here, where what is sent on it would use up the credit that all streams of
//! the connection share, and one that is under way would get none. Only before it is known what the
//! other side allows, a *first flight* is allowed all the same. Some of it may then have to wait,
//! here or at a proxy further on, which cannot be told from here; as long as that may be, each of
//! these streams adds its own credit to that of the connection.

use noq_proto::{Connection, Dir, Side as Initiator, StreamId, VarInt};

use crate::config::SideConfig;
use crate::limits::{FIRST_FLIGHT, FlowCredit, Limits};

const DIRS: [Dir; 2] = [Dir::Bi, Dir::Uni];

/// The opener of streams: those that one side opens are opened towards the other.
pub struct StreamOpener {
    /// Which end of the whole connection that is.
    source: Initiator,
    /// Streams of one kind that may be open at once.
    most: u64,
    /// The credit of that side; `None`: all streams together are not limited.
    credit: Option<FlowCredit>,
    /// Streams that it has opened.
    accepted: [u64; 2],
    /// Streams among them that have been opened towards the other.
    opened: [u64; 2],
    /// How many the other side allowed when that was too few: it is not asked again before it
    /// allows more.
    refused_at: [Option<u64>; 2],
    /// Streams whose credit has been added to that of the connection.
    lent: u64,
}

impl StreamOpener {
    /// `side` is the one that opens them.
    pub fn new(source: Initiator, side: &SideConfig, limits: &Limits) -> Self {
        Self {
            source,
            most: limits.streams.into(),
            credit: FlowCredit::of(side.window, limits),
            accepted: [0, 0],
            opened: [0, 0],
            refused_at: [None, None],
            lent: 0,
        }
    }

    /// Whether a stream is known on both sides; those that the receiving end opens always are.
    pub fn is_open(&self, id: StreamId) -> bool {
        id.initiator() != self.source || id.index() < self.opened[id.dir() as usize]
    }

    /// How many streams have been opened by one side and not yet towards the other, which does not
    /// allow more.
    pub fn waiting(&self) -> u64 {
        let of = |dir: Dir| self.accepted[dir as usize] - self.opened[dir as usize];
        DIRS.into_iter().map(of).sum()
    }

    /// Which they are, in order.
    pub fn waiting_ids(&self) -> impl Iterator<Item = StreamId> {
        DIRS.into_iter().flat_map(move |dir| {
            let waiting = self.opened[dir as usize]..self.accepted[dir as usize];
            waiting.map(move |index| StreamId::new(self.source, dir, index))
        })
    }

    /// Takes note of what the peer has opened.
    pub fn accept(&mut self, from: &mut Connection) {
        for dir in DIRS {
            while from.streams().accept(dir).is_some() {
                self.accepted[dir as usize] += 1;
            }
        }
    }

    /// Opens the next stream that waits, if that is allowed.
    pub fn open(&mut self, to: &mut Connection, dir: Dir) -> Option<StreamId> {
        let kind = dir as usize;
        let allowed = Some(to.streams().allowed(dir));
        if self.opened[kind] == self.accepted[kind] || self.refused_at[kind] == allowed {
            return None;
        }
        let Some(id) = to.streams().open(dir) else {
            self.refused_at[kind] = allowed;
            return None;
        };
        assert_eq!(
            id.index(),
            self.opened[kind],
            "both sides count their streams alike"
        );
        self.opened[kind] += 1;
        Some(id)
    }

    /// None of those that wait will be opened; how many of them could be sent on.
    pub fn give_up(&mut self) -> usize {
        let waiting = self.waiting_ids();
        let count = waiting.filter(|id| id.dir() == Dir::Bi).count();
        self.accepted = self.opened;
        count
    }

    /// Lets a peer open as many streams as the other side allows, and send on those that are under
    /// way whatever others wait; whether something new is to be sent to it.
    pub fn allow(&mut self, from: &mut Connection, to: &mut Connection) -> bool {
        self.accept(from);
        let mut is_new = false;
        let mut lent = 0;
        for dir in DIRS {
            let allowed = to.streams().allowed(dir);
            is_new |= self.allow_more(from, allowed, dir);
            if allowed <= u64::from(FIRST_FLIGHT[dir as usize]) {
                lent += from.streams().remote_open_streams(dir);
            }
        }
        let Some(credit) = self.credit.filter(|_| lent != self.lent) else {
            return is_new;
        };
        self.lent = lent;
        from.set_receive_window(integer(credit.with_waiting(lent)));
        true
    }

    fn allow_more(&self, from: &mut Connection, by_other: u64, dir: Dir) -> bool {
        // All numbers are of the connection's lifetime, as in MAX_STREAMS (RFC 9000, section 4.6).
        let closed = self.accepted[dir as usize] - from.streams().remote_open_streams(dir);
        let allowed = closed + from.max_concurrent_streams(dir);
        let wanted = by_other.min(closed + self.most);
        if wanted <= allowed {
            return false;
        }
        from.set_max_concurrent_streams(dir, integer(wanted - closed));
        // One that ends allows no other by itself; and whatever is new is said at once.
        from.set_max_concurrent_streams(dir, integer(0));
        true
    }
}

fn integer(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}
