//! One direction over one link or more, as the nodes that packets meet.

use std::collections::VecDeque;

use bentpipe_units::{Span, Time};

use crate::aggregate::Aggregation;
use crate::arrival_order::ArrivalOrder;
use crate::bit_errors::BitErrors;
use crate::delays::Delays;
use crate::direction::Direction;
use crate::duplicate::{Copies, Duplication};
use crate::events::{EVENTS_KEPT, RequestWait};
use crate::hop::Hop;
use crate::loss::{EndOfLost, Losses};
use crate::mtu::Mtu;
use crate::node::{Node, Step, Transit};
use crate::order::NodeName;
use crate::packet::{CapacityRequests, Counters, Fate, Outcome, PacketMeta, SourceCounters};
use crate::policer::Policer;
use crate::random::{LinkSeed, Purpose};
use crate::rate::LinkRate;
use crate::reorder::Reordering;
use crate::satellite::{Carrier, ReturnCarrier};
use crate::scenario::{DirectionConfig, Scenario};
use crate::scheduled::ScheduledTransmitter;
use crate::shaper::Shaper;
use crate::sources::{CrossTraffic, SourceLink};
use crate::transmitter::Transmitter;
use crate::udp::{Udp, UdpConfig};

/// A path in one direction: the nodes of its links, in the order in which packets meet them.
///
/// Packets go in by [`Path::enqueue`], and what becomes of them comes out as [`Outcome`]s. Where it
/// depends on what comes later, a node holds a packet, and [`Path::advance`] says how far time has
/// come.
pub struct Path {
    nodes: Vec<PlacedNode>,
    feeds: Vec<LinkSources>,
    min_delay: Span,
    now: Time,
    decided: VecDeque<Outcome>,
    counters: Counters,
    /// How many packets were sent.
    sent: u64,
    /// The order in which they arrive; None: it is that in which they were sent.
    order: Option<ArrivalOrder>,
    /// Packets of which there is more than one copy in flight.
    copies: Copies,
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
struct LinkSources {
    traffic: CrossTraffic,
    /// The number of the first node behind the link.
    leaves_before: usize,
    /// The same for packets of terminals that share the link: that of the node behind the carrier.
    others_leave_before: usize,
}

impl LinkSources {
    fn leaves_before(&self, terminal: usize) -> usize {
        match terminal {
            0 => self.leaves_before,
            _ => self.others_leave_before,
        }
    }
}

/// The nodes of a link, and its cross traffic.
struct LinkNodes {
    nodes: Vec<Box<dyn Node>>,
    traffic: Option<CrossTraffic>,
}

impl Path {
    /// The whole of a scenario, that nothing has passed yet. `seed` is the trial's: each link takes
    /// separate streams from it (see [`LinkSeed`]).
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
            link(config, hop.scenario().rtt(), seed)
        });
        Self::of(links)
    }

    /// A link by itself. `rtt` is the round-trip time of the whole path, which a queue size in BDP
    /// refers to.
    #[must_use]
    pub fn of_link(config: &DirectionConfig, rtt: Span, seed: LinkSeed) -> Self {
        Self::of([link(config, rtt, seed)])
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
                let shared = (first..nodes.len()).find(|it| nodes[*it].node.is_shared());
                nodes[first].feed = Some(feeds.len());
                feeds.push(LinkSources {
                    traffic,
                    leaves_before: nodes.len(),
                    others_leave_before: shared.map_or(nodes.len(), |it| it + 1),
                });
            }
        }
        let mut after = Span::ZERO;
        for placed in nodes.iter_mut().rev() {
            after = after + placed.node.min_delay();
            placed.after = after;
        }
        let sources = (!feeds.is_empty()).then(SourceCounters::default);
        let reorders = nodes.iter().any(|placed| placed.node.reorders());
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
            sent: 0,
            order: reorders.then(ArrivalOrder::default),
            copies: Copies::default(),
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
            is_copy: false,
            leaves_before: None,
            terminal: 0,
        };
        self.sent += 1;
        self.feed(0, now);
        self.pass(0, now, transit);
    }

    /// Nothing more is sent before `until`: what nodes hold they decide about as far as that tells.
    /// Where nothing more is sent at all, until NEVER, the sources end, too.
    pub fn advance(&mut self, until: Time) {
        if until < Time::NEVER {
            self.now = self.now.max(until);
        } else {
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
                is_udp: emission.is_udp,
            };
            let transit = Transit {
                packet,
                number: 0,
                is_lost: false,
                is_marked: false,
                is_copy: false,
                leaves_before: Some(self.feeds[feed].leaves_before(emission.terminal)),
                terminal: emission.terminal,
            };
            self.pass(index, emission.at, transit);
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

    /// Takes a packet that arrives at the node with that number as far as it goes. What sources
    /// send there before has been let in.
    fn pass(&mut self, mut index: usize, mut now: Time, mut transit: Transit) {
        let end = transit.leaves_before.unwrap_or(self.nodes.len());
        while index < end {
            self.release(index, now);
            match self.nodes[index].node.enqueue(now, &mut transit) {
                Step::Leave { at } => now = at,
                Step::LeaveTwice { at } => return self.pass_twice(index, at, transit),
                // It may be free, and send the packet at once.
                Step::Hold => return self.release(index, now),
                step => return self.end(transit, step),
            }
            index += 1;
            self.feed(index, now);
        }
        self.decide(transit, Fate::Delivered { at: now }, None);
    }

    /// The node with that number has made two of a packet, which goes on now. The copy may follow
    /// at once.
    fn pass_twice(&mut self, index: usize, now: Time, transit: Transit) {
        if transit.leaves_before.is_none() {
            self.copies.duplicate(transit.number);
        }
        self.feed(index + 1, now);
        self.pass(index + 1, now, transit);
        self.release(index, now);
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
            Step::Drop => self.decide(transit, Fate::QueueDrop, None),
            Step::Lose => self.decide(transit, Fate::Loss, None),
            Step::LoseForSize { mtu } => self.decide(transit, Fate::Loss, Some(mtu)),
            Step::Leave { .. } | Step::LeaveTwice { .. } | Step::Hold => {}
        }
    }

    fn decide(&mut self, transit: Transit, fate: Fate, exceeds_mtu: Option<u32>) {
        if let (Some(_), Some(sources)) = (transit.leaves_before, &mut self.counters.sources) {
            let ip_bytes = transit.packet.ip_bytes;
            if transit.is_copy {
                return sources.count_copy(fate, ip_bytes);
            }
            return sources.count(fate, ip_bytes);
        }
        let has_arrived = matches!(fate, Fate::Delivered { .. });
        let (is_copy, copies_under_way) = self.copies.end(transit.number, has_arrived);
        let outcome = Outcome {
            packet: transit.packet,
            fate,
            is_marked: transit.is_marked && has_arrived,
            exceeds_mtu,
            is_copy,
            copies_under_way,
        };
        self.count(&outcome, transit.number);
        self.decided.push_back(outcome);
    }

    fn count(&mut self, outcome: &Outcome, number: u64) {
        let has_arrived = matches!(outcome.fate, Fate::Delivered { .. });
        if outcome.is_copy {
            self.counters.duplicated += u64::from(has_arrived);
            return;
        }
        self.counters.count(outcome.fate, outcome.packet.ip_bytes);
        self.counters.marked += u64::from(outcome.is_marked);
        if let (Some(order), true) = (&mut self.order, has_arrived) {
            let extent = order.arrive(outcome.packet.flow, number);
            self.counters.reorder(extent);
        }
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
        let requests = self.nodes.iter().filter_map(|it| it.node.requests());
        Counters {
            max_queue_bytes: queues.max().unwrap_or(0),
            requests: requests.reduce(CapacityRequests::and),
            ..self.counters
        }
    }

    /// The requests for capacity that have been answered, in the order of sending, at most
    /// [`EVENTS_KEPT`] and one more.
    #[must_use]
    pub fn answered_requests(&self) -> Vec<RequestWait> {
        let nodes = self.nodes.iter();
        let mut all: Vec<_> = nodes
            .flat_map(|it| it.node.answered_requests())
            .copied()
            .collect();
        all.sort_by_key(|it| it.sent);
        all.truncate(EVENTS_KEPT + 1);
        all
    }
}

/// A link: its nodes, and what its sources send.
fn link(config: &DirectionConfig, rtt: Span, seed: LinkSeed) -> LinkNodes {
    let config = &*config.in_trial(seed);
    let rate = config.rate.as_ref().map(LinkRate::nominal);
    let traffic = rate.and_then(|rate| {
        let link = SourceLink {
            rate,
            rtt,
            mtu: config.mtu,
            seed,
        };
        CrossTraffic::new(&config.all_sources(), link)
    });
    LinkNodes {
        nodes: nodes(config, rtt, seed),
        traffic,
    }
}

/// The nodes of a link, in their order. What does nothing is left out.
fn nodes(config: &DirectionConfig, rtt: Span, seed: LinkSeed) -> Vec<Box<dyn Node>> {
    let mut nodes: Vec<Box<dyn Node>> = Vec::new();
    let mut some_are_lost = false;
    for name in config.order() {
        if some_are_lost && !name.takes_lost() {
            nodes.push(Box::new(EndOfLost));
            some_are_lost = false;
        }
        // Packets are lost where the delay begins.
        let ends_lost = some_are_lost && *name == NodeName::Delay;
        nodes.extend(node(*name, config, rtt, seed, ends_lost));
        some_are_lost = (some_are_lost && !ends_lost) || config.lets_lost_go_on(*name);
    }
    if some_are_lost {
        nodes.push(Box::new(EndOfLost));
    }
    nodes
}

/// A node of a link; None if it does nothing. `ends_lost`: some packets that reach it are lost.
fn node(
    name: NodeName,
    config: &DirectionConfig,
    rtt: Span,
    seed: LinkSeed,
    ends_lost: bool,
) -> Option<Box<dyn Node>> {
    Some(match name {
        NodeName::Mtu => Box::new(Mtu::new(config.mtu?)),
        NodeName::Udp => {
            let udp = config.udp.filter(UdpConfig::is_node)?;
            Box::new(Udp::new(udp, seed.stream(Purpose::Udp)))
        }
        NodeName::Policer => Box::new(Policer::new(config.policer?)),
        NodeName::Shaper => Box::new(Shaper::new(config.shaper?, rtt, seed)),
        NodeName::Queue => {
            let bdp = config.bdp(rtt);
            if let Some(carrier) = Carrier::new(config, bdp, seed) {
                Box::new(carrier)
            } else if let Some(carrier) = ReturnCarrier::new(config, bdp, seed) {
                Box::new(carrier)
            } else if let Some(transmitter) = ScheduledTransmitter::new(config, bdp, seed) {
                Box::new(transmitter)
            } else {
                Box::new(Transmitter::new(config, bdp, seed)?)
            }
        }
        NodeName::Loss if !config.has(name) => return None,
        NodeName::Loss => Box::new(Losses::new(config.loss.clone(), seed.stream(Purpose::Loss))),
        NodeName::BitErrors => {
            let dice = seed.stream(Purpose::BitErrors);
            Box::new(BitErrors::new(config.bit_errors?, dice))
        }
        NodeName::Delay if !ends_lost && !config.has(name) => return None,
        NodeName::Delay => Box::new(Delays::new(config, seed)),
        NodeName::Aggregate => Box::new(Aggregation::new(config.aggregate?)),
        NodeName::Duplicate => {
            let dice = seed.stream(Purpose::Duplicate);
            Box::new(Duplication::new(config.duplicate?, dice))
        }
        NodeName::Reorder => {
            let dice = seed.stream(Purpose::Reorder);
            Box::new(Reordering::new(config.reorder?, dice))
        }
    })
}
