//! A named path: its segments, each with two directions.

use bentpipe_units::{Rate, Size, Span};
use serde::Serialize;

use crate::delay::Delay;
use crate::direction::{Direction, SegmentName};
use crate::loss::Loss;
use crate::queue::Queue;
use crate::rate::LinkRate;
use crate::waiting::Limit;

/// A named path. Its TOML and JSON forms have the same shape; values are texts with units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scenario {
    /// What users type; in a file it may be left out and is the file's name.
    pub name: String,
    /// For reports, one line.
    pub title: String,
    /// Where the figures come from.
    pub source: String,
    /// What the source leaves open and how it is settled here; for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The virtual time after which a trial is given up.
    pub timeout: Span,
    /// Client to terminal; transparent if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Segment>,
    /// Terminal to gateway.
    pub satellite: Segment,
    /// Gateway to server; transparent if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ground: Option<Segment>,
}

/// One hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    /// Packets leave only at multiples of this span, each at the first that is not before its last bit is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<Span>,
}

/// Bytes of the largest IP packets that Ethernet carries.
const FULL_SIZED: u64 = 1500;

impl Scenario {
    /// The given segments of a direction, in the order in which packets meet them.
    pub(crate) fn hops(
        &self,
        direction: Direction,
    ) -> impl Iterator<Item = (SegmentName, &DirectionConfig)> {
        let mut segments = vec![(SegmentName::Satellite, &self.satellite)];
        if let Some(access) = &self.access {
            segments.insert(0, (SegmentName::Access, access));
        }
        if let Some(ground) = &self.ground {
            segments.push((SegmentName::Ground, ground));
        }
        if direction == Direction::Forward {
            segments.reverse();
        }
        segments
            .into_iter()
            .map(move |(name, segment)| (name, segment.direction(direction)))
    }

    /// The round-trip time without queueing and transmission: the smallest delays of both directions.
    #[must_use]
    pub fn rtt(&self) -> Span {
        Direction::BOTH
            .into_iter()
            .map(|direction| self.min_one_way(direction))
            .sum()
    }

    /// The smallest delay of a direction, over all segments.
    #[must_use]
    pub fn min_one_way(&self, direction: Direction) -> Span {
        self.hops(direction)
            .map(|(_, config)| config.delay.min())
            .sum()
    }

    /// The smallest rate of a direction, over all segments, where those that change count with their
    /// [nominal](crate::LinkRate::nominal) rate; none if nothing limits it.
    #[must_use]
    pub fn rate(&self, direction: Direction) -> Option<Rate> {
        self.hops(direction)
            .filter_map(|(_, config)| config.nominal_rate())
            .min()
    }

    /// The smallest rate that a direction ever has, over all segments; none if nothing limits it.
    #[must_use]
    pub fn lowest_rate(&self, direction: Direction) -> Option<Rate> {
        self.hops(direction)
            .filter_map(|(_, config)| Some(config.rate.as_ref()?.lowest()))
            .min()
    }

    /// Whether no rate of a direction ever changes.
    #[must_use]
    pub fn is_steady(&self, direction: Direction) -> bool {
        self.hops(direction)
            .filter_map(|(_, config)| config.rate.as_ref())
            .all(LinkRate::is_steady)
    }

    /// What the queue of the slowest link of a direction holds, if full-sized packets wait in it. None if no link limits
    /// the rate: then nothing ever waits.
    #[must_use]
    pub fn queue(&self, direction: Direction) -> Option<Size> {
        let links = self.hops(direction).map(|(_, config)| config);
        let slowest = links
            .filter(|it| it.rate.is_some())
            .min_by_key(|it| it.nominal_rate())?;
        let rate = slowest.nominal_rate()?;
        let limit = Limit::new(slowest.queue.size, rate, self.bdp(slowest));
        Some(Size::from_bytes(match limit {
            Limit::Packets(packets) => packets.saturating_mul(FULL_SIZED),
            Limit::Bytes(bytes) => bytes,
        }))
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

    /// The bytes in flight that fill a link: its nominal rate times the path's round-trip time. All there are
    /// if it has no rate.
    #[must_use]
    pub fn bdp(&self, link: &DirectionConfig) -> Size {
        link.nominal_rate()
            .map_or(Size::from_bytes(u64::MAX), |rate| rate.bytes_in(self.rtt()))
    }
}

impl DirectionConfig {
    fn nominal_rate(&self) -> Option<Rate> {
        self.rate.as_ref().map(LinkRate::nominal)
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
