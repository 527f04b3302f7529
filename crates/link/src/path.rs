//! One direction over one link or more, as the nodes that packets meet.

use std::collections::VecDeque;

use bentpipe_units::{Size, Span, Time};

use crate::delay::{Delay, Delays};
use crate::direction::Direction;
use crate::hop::Hop;
use crate::loss::{Loss, Losses};
use crate::node::{Node, Step, Transit};
use crate::packet::{Counters, Fate, Outcome, PacketMeta, SourceCounters};
use crate::random::{LinkSeed, Use};
use crate::rate::LinkRate;
use crate::scenario::{DirectionConfig, Scenario};
use crate::scheduled::ScheduledTransmitter;
use crate::sources::{CrossTraffic, SourceLink};
use crate::transmitter::Transmitter;

/// A path in one direction: the nodes of its links, in the order in which packets meet them.
///
/// Packets go in by [`Path::enqueue`], and what becomes of them comes out as [`Outcome`]s. Where it
/// depends on what comes later, a node holds a packet, and [`Path::advance`] says how far time has
/// come.
pub struct Path {
    nodes: Vec<PlacedNode>,
    feeds: Vec<Feed>,
    min_delay: Span,
    now: Time,
    decided: VecDeque<Outcome>,
    counters: Counters,
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
    /// The feed that enters here.
    feed: Option<usize>,
}

/// The cross traffic of a link.
struct Feed {
    traffic: CrossTraffic,
    /// The number of the first node behind the link.
    leaves_before: usize,
}

/// The nodes of a link, and its cross traffic.
struct LinkNodes {
    nodes: Vec<Box<dyn Node>>,
    traffic: Option<CrossTraffic>,
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
        let links = hop.links(direction).map(|(segment, config)| {
            let seed = LinkSeed {
                seed,
                direction,
                segment,
            };
            link(config, hop.scenario().bdp(config), seed)
        });
        Self::of(links)
    }

    /// A link by itself. `bdp` is what a queue size in BDP refers to: the link's rate times the
    /// round-trip time of the whole path.
    #[must_use]
    pub fn of_link(config: &DirectionConfig, bdp: Size, seed: LinkSeed) -> Self {
        Self::of([link(config, bdp, seed)])
    }

    fn of(links: impl IntoIterator<Item = LinkNodes>) -> Self {
        let mut nodes: Vec<PlacedNode> = Vec::new();
        let mut feeds = Vec::new();
        let mut before = Span::ZERO;
        for link in links {
            let first = nodes.len();
            for node in link.nodes {
                let delay = node.min_delay();
                nodes.push(PlacedNode {
                    holds: node.holds(),
                    before,
                    after: Span::ZERO,
                    feed: None,
                    node,
                });
                before = before + delay;
            }
            if let Some(traffic) = link.traffic {
                nodes[first].feed = Some(feeds.len());
                feeds.push(Feed {
                    traffic,
                    leaves_before: nodes.len(),
                });
            }
        }
        let mut after = Span::ZERO;
        for placed in nodes.iter_mut().rev() {
            after = after + placed.node.min_delay();
            placed.after = after;
        }
        let sources = (!feeds.is_empty()).then(SourceCounters::default);
        Self {
            nodes,
            feeds,
            min_delay: after,
            now: Time::ZERO,
            decided: VecDeque::new(),
            counters: Counters {
                sources,
                ..Counters::default()
            },
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
            is_lost: false,
            is_marked: false,
            leaves_before: None,
        };
        self.feed(0, now);
        self.pass(0, now, transit);
    }

    /// Nothing more is sent before `until`: what nodes hold they decide about as far as that tells.
    /// Where nothing more is sent at all, until NEVER, the sources end, too.
    pub fn advance(&mut self, until: Time) {
        if until == Time::NEVER {
            self.feeds.iter_mut().for_each(|it| it.traffic.stop());
        }
        for index in 0..self.nodes.len() {
            // Nothing that is sent later reaches the node before this.
            let until = until + self.nodes[index].before;
            self.feed(index, until);
            self.release(index, until);
        }
    }

    /// Lets in, at the node with that number, what sources send there until a time.
    fn feed(&mut self, index: usize, until: Time) {
        let Some(feed) = self.nodes.get(index).and_then(|it| it.feed) else {
            return;
        };
        while let Some(emission) = self.feeds[feed].traffic.next(until) {
            let packet = PacketMeta {
                id: 0,
                ip_bytes: emission.ip_bytes,
                ecn: 0,
                flow: emission.flow,
            };
            let transit = Transit {
                packet,
                is_lost: false,
                is_marked: false,
                leaves_before: Some(self.feeds[feed].leaves_before),
            };
            self.pass(index, emission.at, transit);
        }
    }

    /// The earliest time at which a packet may arrive whose fate is open; NEVER if none is.
    #[must_use]
    pub fn next_arrival(&self) -> Time {
        let holding = self.nodes.iter().filter(|it| it.holds);
        let open = holding.map(|it| match it.node.next_event() {
            Time::NEVER => Time::NEVER,
            leaves => leaves + it.after,
        });
        open.min().unwrap_or(Time::NEVER)
    }

    /// The next packet about which the path has decided.
    pub fn outcome(&mut self) -> Option<Outcome> {
        self.decided.pop_front()
    }

    /// Takes a packet that arrives at the node with that number as far as it goes. What sources
    /// send there before has been let in.
    fn pass(&mut self, mut index: usize, mut now: Time, mut transit: Transit) {
        let end = transit.leaves_before.unwrap_or(self.nodes.len());
        while index < end {
            self.release(index, now);
            match self.nodes[index].node.enqueue(now, &mut transit) {
                Step::Leave { at } => now = at,
                // It may be free, and send the packet at once.
                Step::Hold => return self.release(index, now),
                step => return self.end(transit, step),
            }
            index += 1;
            self.feed(index, now);
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
                Step::Leave { at } => {
                    self.feed(index + 1, at);
                    self.pass(index + 1, at, transit);
                }
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
        if let (Some(_), Some(sources)) = (transit.leaves_before, &mut self.counters.sources) {
            return sources.count(fate, transit.packet.ip_bytes);
        }
        let outcome = Outcome {
            packet: transit.packet,
            fate,
            is_marked: transit.is_marked && matches!(fate, Fate::Delivered { .. }),
        };
        self.counters.count(fate, transit.packet.ip_bytes);
        self.counters.marked += u64::from(outcome.is_marked);
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

/// A link: its nodes, and what its sources send.
fn link(config: &DirectionConfig, bdp: Size, seed: LinkSeed) -> LinkNodes {
    let rate = config.rate.as_ref().map(LinkRate::nominal);
    let traffic = rate.and_then(|rate| {
        let link = SourceLink {
            rate,
            rtt: rate.time_for(bdp),
            seed,
        };
        CrossTraffic::new(&config.sources, link)
    });
    LinkNodes {
        nodes: nodes(config, bdp, seed),
        traffic,
    }
}

/// The nodes of a link, in their usual order: capacity with its queue, loss, delay. What does
/// nothing is left out.
fn nodes(config: &DirectionConfig, bdp: Size, seed: LinkSeed) -> Vec<Box<dyn Node>> {
    let mut nodes: Vec<Box<dyn Node>> = Vec::new();
    if let Some(transmitter) = ScheduledTransmitter::new(config, bdp, seed) {
        nodes.push(Box::new(transmitter));
    } else if let Some(transmitter) = Transmitter::new(config, bdp, seed) {
        nodes.push(Box::new(transmitter));
    }
    let can_lose = config.loss != Loss::None;
    if can_lose {
        nodes.push(Box::new(Losses::new(config.loss, seed.stream(Use::Loss))));
    }
    // What is lost is so where the delay begins.
    if can_lose || config.delay != Delay::default() {
        let dice = seed.stream(Use::Delay);
        nodes.push(Box::new(Delays::new(config.delay.clone(), dice)));
    }
    nodes
}
