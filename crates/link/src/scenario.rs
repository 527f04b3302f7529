//! A named path: its segments, each with two directions.

use bentpipe_units::{Rate, Size, Span};
use serde::Serialize;

use crate::aggregate::Aggregate;
use crate::bit_errors::BitErrorRate;
use crate::delay::Delay;
use crate::direction::{Direction, SegmentName};
use crate::loss::Loss;
use crate::queue::Queue;
use crate::rate::LinkRate;
use crate::reorder::Reorder;

/// A scenario, a named path. Its TOML and JSON forms have the same shape; values are texts with
/// units.
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
    /// None if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bit_errors: Option<BitErrorRate>,
    /// None if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
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
        links
            .filter_map(|(_, config)| Some(config.rate.as_ref()?.lowest()))
            .min()
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
