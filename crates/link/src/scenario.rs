//! A named path, or several: its segments, each with two directions.

use std::borrow::Cow;

use bentpipe_units::{Rate, Size, Span};
use serde::{Serialize, Serializer};

use crate::aggregate::Aggregate;
use crate::bit_errors::BitErrorRate;
use crate::delay::Delay;
use crate::direction::{Direction, SegmentName};
use crate::duplicate::Duplicate;
use crate::handovers::{HandoverTimes, Handovers};
use crate::intervals::Intervals;
use crate::loss::Loss;
use crate::order::{NodeName, USUAL};
use crate::outages::{OutageTimes, Outages};
use crate::queue::Queue;
use crate::queue_size::QueueSize;
use crate::random::LinkSeed;
use crate::rate::LinkRate;
use crate::reorder::Reorder;
use crate::shaper::ShaperConfig;
use crate::sources::Source;
use crate::token_bucket::TokenBucketConfig;
use crate::udp::UdpConfig;

/// A scenario, a named path. Its TOML and JSON forms have the same shape; values are texts with
/// units. Where it has several paths, its own segments are those of the first, and so is what its
/// methods say; [`Scenario::each_path`] has all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scenario {
    /// The name that users type; a file may leave it out, then it is the file's name.
    pub name: String,
    /// A title of one line, for reports.
    pub title: String,
    /// The source of the figures.
    pub source: String,
    /// Notes for people: what the source leaves open, and how it is settled here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The virtual time after which a trial is given up.
    pub timeout: Span,
    /// The name of the first path, where there are others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Client to terminal; transparent if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Segment>,
    /// Terminal to gateway.
    pub satellite: Segment,
    /// Gateway to server; transparent if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ground: Option<Segment>,
    /// The paths beside the first, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "by_name")]
    pub paths: Vec<FurtherPath>,
}

fn by_name<S: Serializer>(paths: &[FurtherPath], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(paths.iter().map(|it| (&it.name, it)))
}

/// A path beside the first of a scenario: its name and its segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FurtherPath {
    /// The name by which settings and records call it.
    #[serde(skip)]
    pub name: String,
    /// Client to terminal; transparent if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Segment>,
    /// Terminal to gateway.
    pub satellite: Segment,
    /// Gateway to server; transparent if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ground: Option<Segment>,
}

/// A segment: what lies between two hosts, both ways. The default is transparent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// Server to client; transparent if left out.
    pub forward: DirectionConfig,
    /// Client to server; transparent if left out.
    #[serde(rename = "return")]
    pub return_: DirectionConfig,
}

/// One direction of one segment. The default is transparent: no limit, no delay, no loss.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DirectionConfig {
    /// None, or `"unlimited"`: no limit, so nothing ever waits and the queue has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<LinkRate>,
    /// None if left out.
    pub delay: Delay,
    /// 1 BDP if left out.
    pub queue: Queue,
    /// None if left out.
    pub loss: Loss,
    /// Packets leave only at multiples of this span, each at the first that is not before its last
    /// bit is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<Span>,
    /// Cross traffic; none if left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Larger packets are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Size>,
    /// Treatment of UDP only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpConfig>,
    /// Packets beyond this rate are dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policer: Option<TokenBucketConfig>,
    /// Packets beyond this rate wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shaper: Option<ShaperConfig>,
    /// Times at which the rate is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outages: Option<Outages>,
    /// Changes from one path to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handovers: Option<Handovers>,
    /// The nodes in the order in which packets meet them; the usual one if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<NodeName>>,
    /// None if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bit_errors: Option<BitErrorRate>,
    /// None if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
    /// None if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Duplicate>,
    /// None if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
}

impl Scenario {
    /// A segment; None: it is transparent.
    #[must_use]
    pub fn segment(&self, name: SegmentName) -> Option<&Segment> {
        match name {
            SegmentName::Access => self.access.as_ref(),
            SegmentName::Satellite => Some(&self.satellite),
            SegmentName::Ground => self.ground.as_ref(),
        }
    }

    /// [`Hop::rtt`](crate::Hop::rtt) of the whole path.
    #[must_use]
    pub fn rtt(&self) -> Span {
        self.whole().rtt()
    }

    /// [`Hop::min_one_way`](crate::Hop::min_one_way) of the whole path.
    #[must_use]
    pub fn min_one_way(&self, direction: Direction) -> Span {
        self.whole().min_one_way(direction)
    }

    /// [`Hop::rate`](crate::Hop::rate) of the whole path.
    #[must_use]
    pub fn rate(&self, direction: Direction) -> Option<Rate> {
        self.whole().rate(direction)
    }

    /// The smallest rate that a direction ever has, over all segments; none if nothing limits it.
    #[must_use]
    pub fn lowest_rate(&self, direction: Direction) -> Option<Rate> {
        let links = self.whole().links(direction);
        links.filter_map(|(_, config)| config.lowest_rate()).min()
    }

    /// [`Hop::is_steady`](crate::Hop::is_steady) of the whole path.
    #[must_use]
    pub fn is_steady(&self, direction: Direction) -> bool {
        self.whole().is_steady(direction)
    }

    /// [`Hop::queue`](crate::Hop::queue) of the whole path.
    #[must_use]
    pub fn queue(&self, direction: Direction) -> Option<Size> {
        self.whole().queue(direction)
    }

    /// [`Scenario::rate`] from server to client.
    #[must_use]
    pub fn forward_rate(&self) -> Option<Rate> {
        self.rate(Direction::Forward)
    }

    /// [`Scenario::rate`] from client to server.
    #[must_use]
    pub fn return_rate(&self) -> Option<Rate> {
        self.rate(Direction::Return)
    }

    /// The bytes in flight that fill a link: its nominal rate times the path's round-trip time. All
    /// there are if it has no rate.
    #[must_use]
    pub fn bdp(&self, link: &DirectionConfig) -> Size {
        link.bdp(self.rtt())
    }
}

impl DirectionConfig {
    /// The bytes in flight that fill the link where a path has this round-trip time. All there are
    /// if it has no rate.
    #[must_use]
    pub fn bdp(&self, rtt: Span) -> Size {
        let rate = self.rate.as_ref().map(LinkRate::nominal);
        rate.map_or(Size::from_bytes(u64::MAX), |rate| rate.bytes_in(rtt))
    }

    /// All sources, each with the number of the terminal whose it is.
    pub(crate) fn all_sources(&self) -> Vec<(usize, Source)> {
        let own = self.sources.iter().map(|it| (0, it.clone()));
        let others = self.rate.as_ref().map_or(Vec::new(), LinkRate::sources);
        own.chain(others).collect()
    }

    /// The token buckets that all packets meet.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = TokenBucketConfig> {
        let shaper = self.shaper.map(|it| it.bucket);
        self.policer.into_iter().chain(shaper)
    }

    /// The most that passes in the long run, where a rate that changes counts with its
    /// [nominal](LinkRate::nominal) value; None if nothing limits it.
    pub(crate) fn nominal_rate(&self) -> Option<Rate> {
        let own = self.rate.as_ref().map(LinkRate::nominal);
        own.into_iter()
            .chain(self.buckets().map(|it| it.rate))
            .min()
    }

    fn lowest_rate(&self) -> Option<Rate> {
        let lowest = |rate: &LinkRate| {
            if self.is_interrupted() {
                Rate::from_bps(0)
            } else {
                rate.lowest()
            }
        };
        let own = self.rate.as_ref().map(lowest);
        own.into_iter()
            .chain(self.buckets().map(|it| it.rate))
            .min()
    }

    /// Whether there are times at which nothing is sent.
    fn is_interrupted(&self) -> bool {
        self.outages.is_some() || self.handovers.is_some()
    }

    /// The link as it is in a trial: with the phases that its seed gives.
    pub(crate) fn in_trial(&self, seed: LinkSeed) -> Cow<'_, Self> {
        let mut link = self.clone();
        let each = link.intervals();
        if each.iter().all(|it| !it.is_random) {
            return Cow::Borrowed(self);
        }
        for intervals in each {
            *intervals = intervals.in_trial(seed);
        }
        Cow::Owned(link)
    }

    /// All intervals that it has.
    fn intervals(&mut self) -> Vec<&mut Intervals> {
        let mut found = Vec::new();
        if let Some(LinkRate::Random(random)) = &mut self.rate {
            found.push(&mut random.intervals);
            found.extend(random.within.iter_mut().map(|(_, it)| it));
        }
        if let Delay::Jitter(jitter) = &mut self.delay {
            found.extend(&mut jitter.intervals);
            found.extend(jitter.within.iter_mut().map(|(_, it)| it));
        }
        if let Loss::Handover { intervals, .. } = &mut self.loss {
            found.push(intervals);
        }
        if let Some(outages) = &mut self.outages
            && let OutageTimes::Every { intervals, .. } = &mut outages.times
        {
            found.push(intervals);
        }
        if let Some(handovers) = &mut self.handovers
            && let HandoverTimes::Every { intervals, .. } = &mut handovers.times
        {
            found.push(intervals);
        }
        found
    }

    /// Whether the rate never changes.
    pub(crate) fn is_steady(&self) -> bool {
        let varies = self.is_interrupted() || self.buckets().next().is_some();
        self.rate.as_ref().is_none_or(LinkRate::is_steady) && !varies
    }

    /// The queue that limits what waits for the lowest rate, and that rate; None if nothing waits.
    pub(crate) fn slowest_queue(&self) -> Option<(Rate, QueueSize)> {
        let own = self
            .rate
            .as_ref()
            .map(|rate| (rate.nominal(), self.queue.size));
        let shaper = self.shaper.map(|it| (it.bucket.rate, it.queue));
        own.into_iter().chain(shaper).min_by_key(|(rate, _)| *rate)
    }

    /// Whether it has a node.
    pub(crate) fn has(&self, node: NodeName) -> bool {
        match node {
            NodeName::Mtu => self.mtu.is_some(),
            NodeName::Udp => self.udp.is_some_and(|it| it.is_node()),
            NodeName::Policer => self.policer.is_some(),
            NodeName::Shaper => self.shaper.is_some(),
            NodeName::Queue => self.rate.is_some() || self.frame.is_some(),
            NodeName::Loss => self.loss != Loss::None,
            NodeName::BitErrors => self.bit_errors.is_some(),
            NodeName::Delay => self.delay != Delay::default() || self.handovers.is_some(),
            NodeName::Aggregate => self.aggregate.is_some(),
            NodeName::Duplicate => self.duplicate.is_some(),
            NodeName::Reorder => self.reorder.is_some(),
        }
    }

    /// Whether a node lets packets go on that are lost, so that they end in a later one.
    pub(crate) fn lets_lost_go_on(&self, node: NodeName) -> bool {
        matches!(node, NodeName::Loss | NodeName::BitErrors) && self.has(node)
    }

    /// The nodes in the order in which packets meet them. Not all of them do something.
    pub(crate) fn order(&self) -> &[NodeName] {
        self.order.as_deref().unwrap_or(&USUAL)
    }

    /// Whether packets travel before they meet the rate.
    pub(crate) fn travels_first(&self) -> bool {
        let place = |node| self.order().iter().position(|it| *it == node);
        place(NodeName::Delay) < place(NodeName::Queue)
    }
}

impl Segment {
    /// One of the two directions.
    #[must_use]
    pub fn direction(&self, direction: Direction) -> &DirectionConfig {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Return => &self.return_,
        }
    }
}
