//! A part of a path: what lies between two of its hosts.

use bentpipe_units::{Rate, Size, Span};

use crate::delay::Delay;
use crate::direction::{Direction, HostName, SegmentName};
use crate::order::NodeName;
use crate::scenario::{DirectionConfig, Scenario, Segment};
use crate::waiting::Limit;

/// The delay, each way, of what connects a proxy with its neighbour where the scenario has no delay
/// for that segment.
pub const CABLE: Span = Span::from_nanos(100_000);
/// Bytes of the largest IP packets that Ethernet carries.
const FULL_SIZED: u64 = 1500;

/// A hop: what lies between two neighbours on a path, with other hosts between them at most
/// forwarding: one segment or more. Where there are no proxies, the only hop is that from client to
/// server.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'a> {
    scenario: &'a Scenario,
    /// The host towards the client.
    pub from: HostName,
    /// The host towards the server.
    pub to: HostName,
}

impl<'a> Hop<'a> {
    pub(crate) fn new(scenario: &'a Scenario, from: HostName, to: HostName) -> Self {
        assert!(from < to, "a hop leads towards the server");
        Self { scenario, from, to }
    }

    /// The scenario that it is a part of.
    #[must_use]
    pub fn scenario(&self) -> &'a Scenario {
        self.scenario
    }

    /// Its name: `terminal-gateway`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}-{}", self.from, self.to)
    }

    /// Whether a segment is part of it.
    #[must_use]
    pub fn contains(&self, segment: SegmentName) -> bool {
        let [near, far] = segment.ends();
        self.from <= near && far <= self.to
    }

    /// Its given segments in a direction, in the order in which packets meet them.
    pub fn links(
        &self,
        direction: Direction,
    ) -> impl Iterator<Item = (SegmentName, &'a DirectionConfig)> + use<'a> {
        let mut links: Vec<_> = SegmentName::ALL
            .into_iter()
            .filter(|name| self.contains(*name))
            .filter_map(|name| Some((name, self.scenario.segment(name)?.direction(direction))))
            .collect();
        if direction == Direction::Forward {
            links.reverse();
        }
        links.into_iter()
    }

    /// Its round-trip time without queueing and transmission: the smallest delays of both
    /// directions.
    #[must_use]
    pub fn rtt(&self) -> Span {
        Direction::BOTH
            .into_iter()
            .map(|direction| self.min_one_way(direction))
            .sum()
    }

    /// The smallest delay of a direction, over all of its segments.
    #[must_use]
    pub fn min_one_way(&self, direction: Direction) -> Span {
        let links = self.links(direction);
        links.map(|(_, config)| config.delay.min()).sum()
    }

    /// The smallest rate of a direction, over all of its segments, where those that change count
    /// with their [nominal](crate::LinkRate::nominal) rate; none if nothing limits it.
    #[must_use]
    pub fn rate(&self, direction: Direction) -> Option<Rate> {
        let links = self.links(direction);
        links.filter_map(|(_, config)| config.nominal_rate()).min()
    }

    /// Whether no rate of a direction ever changes.
    #[must_use]
    pub fn is_steady(&self, direction: Direction) -> bool {
        let links = self.links(direction);
        links
            .map(|(_, config)| config)
            .all(DirectionConfig::is_steady)
    }

    /// The largest packet that all of its links carry, both ways; None if none has an MTU.
    #[must_use]
    pub fn mtu(&self) -> Option<Size> {
        let links = Direction::BOTH.into_iter().flat_map(|it| self.links(it));
        links.filter_map(|(_, config)| config.mtu).min()
    }

    /// The size of the queue of a direction's slowest link, in bytes of full-sized packets. None if
    /// no link limits the rate: then nothing ever waits.
    #[must_use]
    pub fn queue(&self, direction: Direction) -> Option<Size> {
        let links = self.links(direction);
        let limited = links.filter_map(|(_, config)| config.slowest_queue());
        let (rate, size) = limited.min_by_key(|(rate, _)| *rate)?;
        let limit = Limit::new(size, rate, rate.bytes_in(self.scenario.rtt()));
        Some(Size::from_bytes(match limit {
            Limit::Packets(packets) => packets.saturating_mul(FULL_SIZED),
            Limit::Bytes(bytes) => bytes,
        }))
    }
}

impl Scenario {
    /// The part of the path between two hosts, the one towards the client first.
    #[must_use]
    pub fn hop(&self, from: HostName, to: HostName) -> Hop<'_> {
        Hop::new(self, from, to)
    }

    /// The path from client to server as one hop.
    #[must_use]
    pub fn whole(&self) -> Hop<'_> {
        self.hop(HostName::Client, HostName::Server)
    }

    /// The path as it is with proxies on some hosts: segments next to them take [`CABLE`] each way
    /// where the scenario gives no delay. A path counts with its cables wherever a round trip is
    /// asked for, as for a queue of 1 BDP.
    #[must_use]
    pub fn with_cables(mut self, proxies: &[HostName]) -> Self {
        let next_to = |name: &SegmentName| name.ends().iter().any(|end| proxies.contains(end));
        for name in SegmentName::ALL.into_iter().filter(next_to) {
            let segment = match name {
                SegmentName::Access => self.access.get_or_insert_default(),
                SegmentName::Satellite => &mut self.satellite,
                SegmentName::Ground => self.ground.get_or_insert_default(),
            };
            segment.lay_cable();
        }
        self
    }
}

impl Segment {
    fn lay_cable(&mut self) {
        for way in [&mut self.forward, &mut self.return_] {
            if way.delay == Delay::default() {
                way.delay = Delay::Fixed(CABLE);
                match &mut way.order {
                    Some(order) if !order.contains(&NodeName::Delay) => order.push(NodeName::Delay),
                    _ => {}
                }
            }
        }
    }
}
