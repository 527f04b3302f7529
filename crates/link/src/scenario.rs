//! A named path: its segments, each with two directions.

use std::path::Path as FilePath;

use bentpipe_units::{Rate, Size, Span};
use serde::{Deserialize, Deserializer, Serialize};
use toml::Table;

use crate::delay::Delay;
use crate::error::ScenarioError;
use crate::fields::{Entry, Fields, Problem};
use crate::loss::Loss;
use crate::queue::Queue;
use crate::sets::{self, Set};

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
    pub rate: Option<Rate>,
    /// None if left out.
    pub delay: Delay,
    /// 1 BDP if left out.
    pub queue: Queue,
    /// None if left out.
    pub loss: Loss,
}

/// A direction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Server to client.
    Forward,
    /// Client to server.
    Return,
}

/// A segment of a path, from the client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SegmentName {
    /// Client to terminal.
    Access,
    /// Terminal to gateway.
    Satellite,
    /// Gateway to server.
    Ground,
}

/// What to write if the satellite is missing.
const SATELLITE: &str = "{ forward = { delay = \"300 ms\" }, return = { delay = \"300 ms\" } }";

impl Direction {
    /// Forward and return.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Return];

    /// The key in scenario files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Return => "return",
        }
    }
}

impl Scenario {
    /// Reads a scenario file and makes changes to it, as [`Scenario::parse`] does.
    pub fn load(path: &FilePath, sets: &[Set]) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ScenarioError::Read {
            file: file.clone(),
            error,
        })?;
        Self::parse(&text, &file, sets)
    }

    /// Reads a scenario from TOML and makes changes to it: pairs of a key with dots and a value. A key
    /// that begins with `forward` or `return` means the satellite segment. `file` names the text in
    /// errors, gives the scenario its name, and relative paths of traces are relative to it.
    pub fn parse(text: &str, file: &str, sets: &[Set]) -> Result<Self, ScenarioError> {
        let mut table: Table =
            text.parse()
                .map_err(|error: toml::de::Error| ScenarioError::Syntax {
                    file: file.to_owned(),
                    message: error.to_string(),
                })?;
        for set in sets {
            sets::apply(&mut table, set)?;
        }
        let path = FilePath::new(file);
        if let (false, Some(stem)) = (table.contains_key("name"), path.file_stem()) {
            table.insert(
                "name".to_owned(),
                stem.to_string_lossy().into_owned().into(),
            );
        }
        let folder = path.parent().unwrap_or(FilePath::new(""));
        Self::read(table, folder).map_err(|Problem { key, message }| ScenarioError::Value {
            file: blame(file, &key, sets),
            key,
            message,
        })
    }

    fn read(table: Table, folder: &FilePath) -> Result<Self, Problem> {
        let mut fields = Fields::new(table);
        let segment = |entry| Segment::read(entry, folder);
        let scenario = Self {
            name: fields.required("name", "\"sat\"")?.text()?,
            title: fields.required("title", "\"GEO, 20/2 Mbit/s\"")?.text()?,
            source: fields
                .required("source", "\"where the figures come from\"")?
                .text()?,
            notes: fields.take("notes").map(|entry| entry.text()).transpose()?,
            timeout: fields.required("timeout", "\"120 s\"")?.parse()?,
            access: fields.take("access").map(segment).transpose()?,
            satellite: segment(fields.required("satellite", SATELLITE)?)?,
            ground: fields.take("ground").map(segment).transpose()?,
        };
        fields.finish()?;
        scenario.check_delays()?;
        Ok(scenario)
    }

    /// Virtual time advances by the smallest delay of a direction, so there must be one.
    fn check_delays(&self) -> Result<(), Problem> {
        match Direction::BOTH
            .iter()
            .find(|direction| self.min_one_way(**direction) == Span::ZERO)
        {
            None => Ok(()),
            Some(direction) => Err(Problem {
                key: format!("satellite.{}.delay", direction.name()),
                message: "0 ms: a path needs a delay in each direction, at all times; \
                          write delay = \"300 ms\""
                    .to_owned(),
            }),
        }
    }

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

    /// The smallest rate of a direction, over all segments; none if nothing limits it.
    #[must_use]
    pub fn rate(&self, direction: Direction) -> Option<Rate> {
        self.hops(direction)
            .filter_map(|(_, config)| config.rate)
            .min()
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

    /// The bytes in flight that fill a link: its rate times the path's round-trip time. All there are
    /// if it has no rate.
    #[must_use]
    pub fn bdp(&self, link: &DirectionConfig) -> Size {
        link.rate
            .map_or(Size::from_bytes(u64::MAX), |rate| rate.bytes_in(self.rtt()))
    }

    /// The completion time of an ideal sender of so many bytes: a round trip for the handshake, one
    /// for the request, then the forward rate with 5 % of overhead for headers.
    #[must_use]
    pub fn limit(&self, size_bytes: u64) -> Span {
        let nanos = self.forward_rate().map_or(0, |rate| {
            // 8 bits per byte, 1.05 bytes per byte, 10^9 nanoseconds per second.
            (u128::from(size_bytes) * 8 * 1_050_000_000).div_ceil(u128::from(rate.bps()))
        });
        self.rtt() * 2 + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The file, and the change whose key is the one with the problem, if there is one.
fn blame(file: &str, problem: &str, sets: &[Set]) -> String {
    let touches = |(key, _): &&Set| {
        let key = sets::full_key(key);
        let begins =
            |long: &str, short: &str| long == short || long.starts_with(&format!("{short}."));
        begins(problem, &key) || begins(&key, problem)
    };
    match sets.iter().rev().find(touches) {
        Some((key, value)) => format!("{file} with --set {key}={value}"),
        None => file.to_owned(),
    }
}

impl<'de> Deserialize<'de> for Scenario {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = Table::deserialize(deserializer)?;
        Self::read(table, FilePath::new("")).map_err(|Problem { key, message }| {
            serde::de::Error::custom(format!("{key}: {message}"))
        })
    }
}

impl Segment {
    fn read(entry: Entry, folder: &FilePath) -> Result<Self, Problem> {
        let mut fields = entry.table()?;
        let direction = |entry: Option<Entry>| match entry {
            Some(entry) => DirectionConfig::read(entry, folder),
            None => Ok(DirectionConfig::default()),
        };
        let forward = direction(fields.take(Direction::Forward.name()))?;
        let return_ = direction(fields.take(Direction::Return.name()))?;
        fields.finish()?;
        Ok(Self { forward, return_ })
    }

    /// One of the two directions.
    #[must_use]
    pub fn direction(&self, direction: Direction) -> &DirectionConfig {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Return => &self.return_,
        }
    }
}

impl DirectionConfig {
    fn read(entry: Entry, folder: &FilePath) -> Result<Self, Problem> {
        let mut fields = entry.table()?;
        let rate = fields
            .take("rate")
            .map(|entry| read_rate(&entry))
            .transpose()?
            .flatten();
        let delay = fields
            .take("delay")
            .map(|entry| Delay::read(entry, folder))
            .transpose()?;
        let queue = fields.take("queue").map(Queue::read).transpose()?;
        let loss = fields.take("loss").map(Loss::read).transpose()?;
        fields.finish()?;
        Ok(Self {
            rate,
            delay: delay.unwrap_or_default(),
            queue: queue.unwrap_or_default(),
            loss: loss.unwrap_or_default(),
        })
    }
}

fn read_rate(entry: &Entry) -> Result<Option<Rate>, Problem> {
    if entry.is_text("unlimited") {
        return Ok(None);
    }
    match entry.parse::<Rate>()? {
        rate if rate.bps() == 0 => {
            Err(entry.problem("lets nothing through; write \"20 Mbit/s\" or \"unlimited\""))
        }
        rate => Ok(Some(rate)),
    }
}
