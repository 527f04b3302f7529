//! Transfers that begin at random times, each of which grows as a slow start does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_units::{Rate, Span, Time};

use super::config::Transfers;
use super::draws::exponential;
use super::{Emission, Generator, SourceLink};
use crate::random::Dice;

/// The packets of the first round trip (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// The size of its packets, where the link's MTU is not smaller.
const PACKET: u64 = 1500;
/// Transfers that began earlier than this before the start do not count.
const LONGEST_WARM_UP: Span = Span::from_secs(600);
/// The size of the headers of IPv4 and TCP, which the last packet has at least.
const HEADERS: u64 = 40;

/// Transfers whose beginnings are a Poisson process. Each is a separate flow. It sends 10 packets
/// in its first round trip, twice as many in each next one, evenly spread, until it sends at the
/// peak rate. What is lost is not repeated.
///
/// When the source starts, transfers are under way that began before, as many as at any time: else
/// it would send less than its load at first, and for minutes, as few large transfers have a large
/// part of it.
pub(super) struct Web {
    transfers: Transfers,
    /// How much earlier than its source it begins: no transfer takes longer.
    warm_up: Span,
    /// The start of the source, by a clock that is ahead by as much.
    from: Time,
    packet: u64,
    /// From one transfer to the next, in the mean.
    interval: Span,
    rtt: Span,
    /// The time that a packet takes at the peak rate.
    shortest: Span,
    dice: Dice,
    next_flow: u64,
    next_transfer: Time,
    open: BinaryHeap<Reverse<Transfer>>,
}

/// A transfer under way, in the order of what is next.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Transfer {
    next: Time,
    flow: u64,
    bytes_left: u64,
    window: u64,
    /// Packets that are left of this round trip.
    left_of_round: u64,
}

impl Web {
    pub fn new(
        transfers: Transfers,
        link: SourceLink,
        start: Time,
        (first_flow, mut dice): (u64, Dice),
    ) -> Self {
        let interval = time_for(transfers.load, transfers.sizes.mean_bytes());
        let peak = transfers
            .peak
            .unwrap_or(Rate::from_bps(link.rate.bps().div_ceil(4)));
        let packet = link.mtu.map_or(PACKET, |mtu| mtu.bytes().min(PACKET));
        // Before its peak, a transfer doubles its rate in each round trip.
        let longest = time_for(peak, transfers.sizes.largest_bytes()) + link.rtt * 20;
        let warm_up = longest.min(LONGEST_WARM_UP);
        let next_transfer = start + exponential(interval, &mut dice);
        Self {
            transfers,
            warm_up,
            from: start + warm_up,
            packet,
            interval,
            rtt: link.rtt,
            shortest: time_for(peak, packet),
            dice,
            next_flow: first_flow,
            next_transfer,
            open: BinaryHeap::new(),
        }
    }

    fn begin(&mut self) {
        let transfer = Transfer {
            next: self.next_transfer,
            flow: self.next_flow,
            bytes_left: self.transfers.sizes.draw(&mut self.dice),
            window: INITIAL_WINDOW,
            left_of_round: INITIAL_WINDOW,
        };
        self.open.push(Reverse(transfer));
        self.next_flow += 1;
        self.next_transfer += exponential(self.interval, &mut self.dice);
    }
}

impl Transfer {
    /// Sends a packet. Whether it has more.
    fn send(&mut self, packet: u64, rtt: Span, shortest: Span) -> (Emission, bool) {
        let bytes = self.bytes_left.min(packet);
        let emission = Emission {
            at: self.next,
            ip_bytes: u32::try_from(bytes.max(HEADERS)).expect("a packet's size"),
            flow: self.flow,
            is_udp: false,
            terminal: 0,
        };
        self.bytes_left -= bytes;
        self.left_of_round -= 1;
        let pace = Span::from_nanos(rtt.as_nanos() / self.window);
        self.next += pace.max(shortest);
        if self.left_of_round == 0 {
            if pace > shortest {
                self.window *= 2;
            }
            self.left_of_round = self.window;
        }
        (emission, self.bytes_left > 0)
    }
}

impl Web {
    /// The next packet, by the clock that is ahead.
    fn send(&mut self) -> Option<Emission> {
        while self
            .open
            .peek()
            .is_none_or(|it| it.0.next >= self.next_transfer)
        {
            if self.next_transfer == Time::NEVER {
                break;
            }
            self.begin();
        }
        let Reverse(mut transfer) = self.open.pop()?;
        let (emission, has_more) = transfer.send(self.packet, self.rtt, self.shortest);
        if has_more {
            self.open.push(Reverse(transfer));
        }
        Some(emission)
    }
}

impl Generator for Web {
    fn next(&mut self) -> Option<Emission> {
        loop {
            let emission = self.send()?;
            if emission.at >= self.from {
                return Some(Emission {
                    at: emission.at - self.warm_up,
                    ..emission
                });
            }
        }
    }
}

/// How long bytes take at a rate; at least 1 ns.
fn time_for(rate: Rate, bytes: u64) -> Span {
    let nanos = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(rate.bps());
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(1))
}
