//! One direction over one link or more, as the nodes that packets meet.

use std::collections::VecDeque;

use bentpipe_units::{Size, Span, Time};

use crate::aggregate::Aggregation;
use crate::arrival_order::ArrivalOrder;
use crate::bit_errors::BitErrors;
use crate::delay::{Delay, Delays};
use crate::direction::Direction;
use crate::hop::Hop;
use crate::loss::{Loss, Losses};
use crate::node::{Node, Step, Transit};
use crate::packet::{Counters, Fate, Outcome, PacketMeta};
use crate::random::{LinkSeed, Use};
use crate::reorder::Reordering;
use crate::scenario::{DirectionConfig, Scenario};
use crate::scheduled::ScheduledTransmitter;
use crate::transmitter::Transmitter;

/// A path in one direction: the nodes of its links, in the order in which packets meet them.
///
/// Packets go in by [`Path::enqueue`], and what becomes of them comes out as [`Outcome`]s. Where it
/// depends on what comes later, a node holds a packet, and [`Path::advance`] says how far time has
/// come.
pub struct Path {
    nodes: Vec<PlacedNode>,
    min_delay: Span,
    now: Time,
    decided: VecDeque<Outcome>,
    counters: Counters,
    /// How many packets were sent.
    sent: u64,
    /// The order in which they arrive; None: it is that in which they were sent.
    order: Option<ArrivalOrder>,
}

/// A node, and where it is on the path.
struct PlacedNode {
    node: Box<dyn Node>,
    /// Whether it ever holds packets.
    holds: bool,
    /// The least time that packets take from the beginning of the path until here.
    before: Span,
    /// The least time that they take from here, without waiting, to the end of the path.
    after: Span,
}

impl Path {
    /// The whole of a scenario, that nothing has passed yet. `seed` is the trial's: each link takes
    /// streams of its own from it (see [`LinkSeed`]).
    #[must_use]
    pub fn new(scenario: &Scenario, direction: Direction, seed: u64) -> Self {
        Self::over(scenario.whole(), direction, seed)
    }

    /// One hop of it. Its links are those that the whole path has, with the same queues and the
    /// same random streams.
    #[must_use]
    pub fn over(hop: Hop, direction: Direction, seed: u64) -> Self {
        let links = hop.links(direction).flat_map(|(segment, config)| {
            let seed = LinkSeed {
                seed,
                direction,
                segment,
            };
            nodes(config, hop.scenario().bdp(config), seed)
        });
        Self::of(links)
    }

    /// A link by itself. `bdp` is what a queue size in BDP refers to: the link's rate times the
    /// round-trip time of the whole path.
    #[must_use]
    pub fn of_link(config: &DirectionConfig, bdp: Size, seed: LinkSeed) -> Self {
        Self::of(nodes(config, bdp, seed))
    }

    fn of(nodes: impl IntoIterator<Item = Box<dyn Node>>) -> Self {
        let mut before = Span::ZERO;
        let place = |node: Box<dyn Node>| {
            let placed = PlacedNode {
                holds: node.holds(),
                before,
                after: Span::ZERO,
                node,
            };
            before = before + placed.node.min_delay();
            placed
        };
        let mut nodes: Vec<PlacedNode> = nodes.into_iter().map(place).collect();
        let mut after = Span::ZERO;
        for placed in nodes.iter_mut().rev() {
            after = after + placed.node.min_delay();
            placed.after = after;
        }
        let reorders = nodes.iter().any(|placed| placed.node.reorders());
        Self {
            nodes,
            min_delay: after,
            now: Time::ZERO,
            decided: VecDeque::new(),
            counters: Counters::default(),
            sent: 0,
            order: reorders.then(ArrivalOrder::default),
        }
    }

    /// A packet is sent now. Times must not go back.
    pub fn enqueue(&mut self, now: Time, packet: PacketMeta) {
        assert!(
            now >= self.now,
            "a packet is sent at {now}, after one at {}",
            self.now
        );
        self.now = now;
        let transit = Transit {
            packet,
            number: self.sent,
            is_lost: false,
            is_marked: false,
        };
        self.sent += 1;
        self.pass(0, now, transit);
    }

    /// Nothing more is sent before `until`: what nodes hold they decide about as far as that tells.
    pub fn advance(&mut self, until: Time) {
        for index in 0..self.nodes.len() {
            // Nothing that is sent later reaches the node before this.
            self.release(index, until + self.nodes[index].before);
        }
    }

    /// The earliest time at which a packet may arrive whose fate is open; NEVER if none is.
    #[must_use]
    pub fn next_arrival(&self) -> Time {
        self.arrives(|node| node.next_event())
    }

    /// The same if nothing more is sent. What is sent may let go what nodes hold.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        self.arrives(|node| node.next_deadline())
    }

    fn arrives(&self, leaves: impl Fn(&dyn Node) -> Time) -> Time {
        let holding = self.nodes.iter().filter(|it| it.holds);
        let open = holding.map(|it| match leaves(&*it.node) {
            Time::NEVER => Time::NEVER,
            leaves => leaves + it.after,
        });
        open.min().unwrap_or(Time::NEVER)
    }

    /// The next packet about which the path has decided.
    pub fn outcome(&mut self) -> Option<Outcome> {
        self.decided.pop_front()
    }

    /// Takes a packet that arrives at the node with that number as far as it goes.
    fn pass(&mut self, mut index: usize, mut now: Time, mut transit: Transit) {
        while index < self.nodes.len() {
            self.release(index, now);
            match self.nodes[index].node.enqueue(now, &mut transit) {
                Step::Leave { at } => now = at,
                // It may be free, and send the packet at once.
                Step::Hold => return self.release(index, now),
                step => return self.end(transit, step),
            }
            index += 1;
        }
        self.decide(transit, Fate::Delivered { at: now });
    }

    /// Has a node decide about what it holds, up to a time.
    fn release(&mut self, index: usize, until: Time) {
        if !self.nodes[index].holds {
            return;
        }
        while let Some((transit, step)) = self.nodes[index].node.release(until) {
            match step {
                Step::Leave { at } => self.pass(index + 1, at, transit),
                step => self.end(transit, step),
            }
        }
    }

    /// A packet does not go on, at least for now.
    fn end(&mut self, transit: Transit, step: Step) {
        match step {
            Step::Drop => self.decide(transit, Fate::QueueDrop),
            Step::Lose => self.decide(transit, Fate::Loss),
            Step::Leave { .. } | Step::Hold => {}
        }
    }

    fn decide(&mut self, transit: Transit, fate: Fate) {
        let outcome = Outcome {
            packet: transit.packet,
            fate,
            is_marked: transit.is_marked && matches!(fate, Fate::Delivered { .. }),
        };
        self.counters.count(fate, transit.packet.ip_bytes);
        self.counters.marked += u64::from(outcome.is_marked);
        if let (Some(order), Fate::Delivered { .. }) = (&mut self.order, fate) {
            let extent = order.arrive(transit.packet.flow, transit.number);
            self.counters.reorder(extent);
        }
        self.decided.push_back(outcome);
    }

    /// The smallest time that a packet can take: the sum of the smallest delays.
    #[must_use]
    pub fn min_delay(&self) -> Span {
        self.min_delay
    }

    /// The bytes that wait in its queues at a time not before the last packet's arrival.
    #[must_use]
    pub fn queue_bytes(&self, now: Time) -> u64 {
        self.nodes.iter().map(|it| it.node.queue_bytes(now)).sum()
    }

    /// The fates of the packets so far, from end to end; `max_queue_bytes` is that of the fullest
    /// queue.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let queues = self.nodes.iter().map(|it| it.node.max_queue_bytes());
        Counters {
            max_queue_bytes: queues.max().unwrap_or(0),
            ..self.counters
        }
    }
}

/// The nodes of a link, in their usual order: capacity with its queue, loss, bit errors,
/// delay, aggregation, reordering. What does nothing is left out.
fn nodes(config: &DirectionConfig, bdp: Size, seed: LinkSeed) -> Vec<Box<dyn Node>> {
    let mut nodes: Vec<Box<dyn Node>> = Vec::new();
    if let Some(transmitter) = ScheduledTransmitter::new(config, bdp, seed) {
        nodes.push(Box::new(transmitter));
    } else if let Some(transmitter) = Transmitter::new(config, bdp, seed) {
        nodes.push(Box::new(transmitter));
    }
    let can_lose = config.loss != Loss::None || config.bit_errors.is_some();
    if config.loss != Loss::None {
        nodes.push(Box::new(Losses::new(config.loss, seed.stream(Use::Loss))));
    }
    if let Some(rate) = config.bit_errors {
        let dice = seed.stream(Use::BitErrors);
        nodes.push(Box::new(BitErrors::new(rate, dice)));
    }
    // What is lost is so where the delay begins.
    if can_lose || config.delay != Delay::default() {
        let dice = seed.stream(Use::Delay);
        nodes.push(Box::new(Delays::new(config.delay.clone(), dice)));
    }
    if let Some(aggregate) = config.aggregate {
        nodes.push(Box::new(Aggregation::new(aggregate)));
    }
    // Behind all that keeps the order.
    if let Some(reorder) = config.reorder {
        let dice = seed.stream(Use::Reorder);
        nodes.push(Box::new(Reordering::new(reorder, dice)));
    }
    nodes
}
