//! The packets that wait for capacity, and the drops where too many would.

use std::collections::VecDeque;

use bentpipe_units::{Rate, Ratio, Size, Time};

use crate::queue::Queue;
use crate::queue_size::{BILLION, QueueSize};
use crate::random::Dice;

/// A queue size for a given link.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    Packets(u64),
    Bytes(u64),
}

impl Limit {
    pub(crate) fn new(size: QueueSize, rate: Rate, bdp: Size) -> Self {
        match size {
            QueueSize::Packets(packets) => Self::Packets(packets.0),
            QueueSize::Bytes(size) => Self::Bytes(size.bytes()),
            QueueSize::Time(span) => Self::Bytes(rate.bytes_in(span).bytes()),
            QueueSize::Bdp(billionths) => {
                let bytes = u128::from(bdp.bytes()) * u128::from(billionths) / u128::from(BILLION);
                Self::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
        }
    }

    pub(crate) fn is_exceeded_by(self, packets: u64, bytes: u64) -> bool {
        match self {
            Self::Packets(limit) => packets > limit,
            Self::Bytes(limit) => bytes > limit,
        }
    }
}

/// The packets that wait for one link's capacity.
pub(crate) struct Waiting {
    size: Limit,
    random_drop: Option<(Limit, Ratio)>,
    dice: Dice,
    /// When each packet's transmission starts, and its bytes.
    packets: VecDeque<(Time, u32)>,
    bytes: u64,
}

impl Waiting {
    pub fn new(queue: &Queue, rate: Rate, bdp: Size, dice: Dice) -> Self {
        let limit = |size| Limit::new(size, rate, bdp);
        Self {
            size: limit(queue.size),
            random_drop: queue
                .random_drop
                .map(|drop| (limit(drop.above), drop.ratio)),
            dice,
            packets: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes that still wait at a time not before the last packet's arrival.
    pub fn bytes_at(&self, now: Time) -> u64 {
        let started = self.packets.iter().take_while(|(start, _)| *start <= now);
        self.bytes - started.map(|(_, bytes)| u64::from(*bytes)).sum::<u64>()
    }

    /// Takes in a packet whose transmission can start at `start`, or drops it.
    pub fn admit(&mut self, now: Time, start: Time, ip_bytes: u32) -> bool {
        while let Some((_, bytes)) = self.packets.front().filter(|(start, _)| *start <= now) {
            self.bytes -= u64::from(*bytes);
            self.packets.pop_front();
        }
        if start <= now {
            return true;
        }
        let packets = self.packets.len() as u64 + 1;
        let bytes = self.bytes + u64::from(ip_bytes);
        if self.size.is_exceeded_by(packets, bytes) || self.drops_at_random(packets, bytes) {
            return false;
        }
        self.packets.push_back((start, ip_bytes));
        self.bytes = bytes;
        true
    }

    fn drops_at_random(&mut self, packets: u64, bytes: u64) -> bool {
        match self.random_drop {
            Some((above, ratio)) if above.is_exceeded_by(packets, bytes) => self.dice.chance(ratio),
            _ => false,
        }
    }
}
