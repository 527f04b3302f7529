//! Reads scenarios: from TOML files with changes to them, and from JSON.

use std::path::Path;

use bentpipe_units::Span;
use serde::{Deserialize, Deserializer};
use toml::Table;

use crate::aggregate::Aggregate;
use crate::delay::Delay;
use crate::direction::{Direction, SegmentName};
use crate::duplicate::Duplicate;
use crate::error::ScenarioError;
use crate::fields::{Entry, Fields, Problem};
use crate::handovers::Handovers;
use crate::loss::Loss;
use crate::mtu;
use crate::order::{self, NodeName};
use crate::outages::Outages;
use crate::packed_text::file_text;
use crate::queue::Queue;
use crate::rate::LinkRate;
use crate::reorder::Reorder;
use crate::scenario::{DirectionConfig, Scenario, Segment};
use crate::sets::{self, Set};
use crate::several_paths::{SATELLITE, read_first_name, read_others};
use crate::shaper::ShaperConfig;
use crate::sources::Source;
use crate::token_bucket::TokenBucketConfig;
use crate::udp::UdpConfig;

impl Scenario {
    /// Reads a scenario file and makes changes to it, as [`Scenario::parse`] does.
    pub fn load(path: &Path, sets: &[Set]) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let text = file_text(path).map_err(|error| ScenarioError::Read {
            file: file.clone(),
            error,
        })?;
        Self::parse(&text, &file, sets)
    }

    /// Reads a scenario from TOML and makes changes to it: pairs of a key with dots and a value. A
    /// key that begins with `forward` or `return` means the satellite segment. `file` names the
    /// text in errors, gives the scenario its name, and relative paths of traces are relative to
    /// it.
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
        let path = Path::new(file);
        if let (false, Some(stem)) = (table.contains_key("name"), path.file_stem()) {
            table.insert(
                "name".to_owned(),
                stem.to_string_lossy().into_owned().into(),
            );
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::read(table, folder).map_err(|Problem { key, message }| ScenarioError::Value {
            file: blame(file, &key, sets),
            key,
            message,
        })
    }

    fn read(table: Table, folder: &Path) -> Result<Self, Problem> {
        let mut fields = Fields::new(table);
        let segment = |entry| Segment::read(entry, folder);
        let mut scenario = Self {
            name: fields.required("name", "\"sat\"")?.text()?,
            title: fields.required("title", "\"GEO, 20/2 Mbit/s\"")?.text()?,
            source: fields
                .required("source", "\"where the figures come from\"")?
                .text()?,
            notes: fields.take("notes").map(|entry| entry.text()).transpose()?,
            timeout: fields.required("timeout", "\"120 s\"")?.parse()?,
            path: None,
            access: fields.take("access").map(segment).transpose()?,
            satellite: segment(fields.required("satellite", SATELLITE)?)?,
            ground: fields.take("ground").map(segment).transpose()?,
            paths: read_others(fields.take("paths"), folder)?,
        };
        let name = fields.take("path");
        scenario.path = read_first_name(name.as_ref(), &scenario.paths)?;
        fields.finish()?;
        for (number, path) in scenario.each_path().iter().enumerate() {
            path.check().map_err(|problem| match number {
                0 => problem,
                _ => problem.of_path(scenario.path_names()[number]),
            })?;
        }
        Ok(scenario)
    }

    /// Checks what segments need of each other.
    fn check(&self) -> Result<(), Problem> {
        self.check_delays()?;
        self.check_timeout()?;
        self.check_ends()
    }

    /// No trial lasts longer than its delays are known.
    fn check_ends(&self) -> Result<(), Problem> {
        let places = SegmentName::ALL
            .into_iter()
            .flat_map(|segment| Direction::BOTH.map(|direction| (segment, direction)));
        for (segment, direction) in places {
            let link = self.segment(segment).map(|it| it.direction(direction));
            if let Some(Delay::Steps(steps)) = link.map(|it| &it.delay)
                && let Some(ends) = steps.ends.filter(|ends| *ends < self.timeout)
            {
                return Err(Problem {
                    key: format!("{}.{}.delay.ends", segment.name(), direction.name()),
                    message: format!(
                        "{ends}: nothing is known after it, and a trial may last until {}; lower \
                         the timeout, or write period = \"{ends}\" in its place to begin again",
                        self.timeout
                    ),
                });
            }
        }
        Ok(())
    }

    /// Virtual time advances by the smallest delay of a direction, so there must be one.
    fn check_delays(&self) -> Result<(), Problem> {
        let without = |direction: &&Direction| self.min_one_way(**direction) == Span::ZERO;
        let Some(direction) = Direction::BOTH.iter().find(without) else {
            return Ok(());
        };
        Err(Problem {
            key: format!("satellite.{}.delay", direction.name()),
            message: "a path needs a delay above 0 in each direction, at all times; write \
                      delay = \"300 ms\""
                .to_owned(),
        })
    }

    /// No file is transferred in less than the two round trips of a handshake and a request.
    fn check_timeout(&self) -> Result<(), Problem> {
        let least = self.rtt() * 2;
        if self.timeout > least {
            return Ok(());
        }
        Err(Problem {
            key: "timeout".to_owned(),
            message: format!(
                "{}: nothing can be transferred within it; handshake and request alone take \
                 {least} on this path",
                self.timeout
            ),
        })
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
        Self::read(table, Path::new("")).map_err(|Problem { key, message }| {
            serde::de::Error::custom(format!("{key}: {message}"))
        })
    }
}

impl Problem {
    /// The problem of a path beside the first: its segments stand below its name, and what is said
    /// of other keys is said of the path.
    fn of_path(self, name: &str) -> Self {
        if self.key.contains('.') {
            let key = format!("paths.{name}.{}", self.key);
            return Self { key, ..self };
        }
        let message = format!("{} ({name})", self.message);
        Self { message, ..self }
    }
}

impl Segment {
    pub(crate) fn read(entry: Entry, folder: &Path) -> Result<Self, Problem> {
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
}

impl DirectionConfig {
    fn read(entry: Entry, folder: &Path) -> Result<Self, Problem> {
        let mut fields = entry.table()?;
        let rate_key = fields.missing("rate", "").key;
        let rate = fields.take("rate");
        let delay = fields
            .take("delay")
            .map(|entry| Delay::read(entry, folder))
            .transpose()?;
        let queue = fields.take("queue").map(Queue::read).transpose()?;
        let loss = fields.take("loss").map(Loss::read).transpose()?;
        let frame = fields.take("frame");
        let mtu = fields.take("mtu").map(|it| mtu::read(&it)).transpose()?;
        let rate = rate.map(|entry| LinkRate::read(entry, folder, mtu));
        let rate = rate.transpose()?.flatten();
        let frame = frame
            .map(|entry| read_frame(&entry, rate.as_ref()))
            .transpose()?;
        let sources = match fields.take("sources") {
            None => Vec::new(),
            Some(entry) if rate.is_none() => {
                let why =
                    "needs a rate beside it: where nothing waits, sources are in nobody's way";
                return Err(entry.problem(why));
            }
            Some(entry) => Source::read_all(entry, folder, mtu)?,
        };
        let udp = fields.take("udp");
        let policer = fields.take("policer").map(read_policer).transpose()?;
        let shaper = fields.take("shaper").map(ShaperConfig::read).transpose()?;
        let outages = fields
            .take("outages")
            .map(|entry| read_outages(entry, rate.as_ref()))
            .transpose()?;
        let handovers = fields
            .take("handovers")
            .map(|entry| read_handovers(entry, rate.as_ref()))
            .transpose()?;
        let order = fields.take("order");
        let bit_errors = fields.optional("bit_errors")?;
        let aggregate = fields.take("aggregate").map(Aggregate::read).transpose()?;
        let duplicate = fields.take("duplicate").map(Duplicate::read).transpose()?;
        let reorder = fields.take("reorder").map(Reorder::read).transpose()?;
        fields.finish()?;
        let mut config = Self {
            rate,
            delay: delay.unwrap_or_default(),
            queue: queue.unwrap_or_default(),
            loss: loss.unwrap_or_default(),
            frame,
            sources,
            mtu,
            udp: None,
            policer,
            shaper,
            outages,
            handovers,
            bit_errors,
            aggregate,
            duplicate,
            reorder,
            order: None,
        };
        let no_priority = udp.as_ref().map(|it| {
            it.problem("a carrier's queue knows no priority; write aqm = \"fq\" in the queue")
        });
        let udp = udp.map(|it| UdpConfig::read(it, &config.queue, config.rate.is_some()));
        config.udp = udp.transpose()?;
        let has_priority = config.udp.is_some_and(|it| it.priority.is_some());
        let has_both = has_priority && is_carrier(config.rate.as_ref());
        if let Some(problem) = no_priority.filter(|_| has_both) {
            return Err(problem);
        }
        config.order = order
            .map(|it| order::read(it, |node| config.has(node)))
            .transpose()?;
        config.check_shared(&rate_key)?;
        Ok(config)
    }
}

impl DirectionConfig {
    /// Packets of other terminals enter a link where it begins, and a node before the carrier that
    /// they share would treat those of all terminals as one's.
    fn check_shared(&self, rate_key: &str) -> Result<(), Problem> {
        let is_shared = self
            .rate
            .as_ref()
            .is_some_and(|it| !it.sources().is_empty());
        let mut before = self.order().iter().take_while(|it| **it != NodeName::Queue);
        let Some(node) = before.find(|it| self.has(**it)) else {
            return Ok(());
        };
        if !is_shared {
            return Ok(());
        }
        Err(Problem {
            key: format!("{rate_key}.terminals"),
            message: format!(
                "terminals share the carrier, and {} stands before it; write it in another \
                 segment, or behind the queue by order",
                node.name()
            ),
        })
    }
}

/// Whether a rate is a carrier of its own frames.
fn is_carrier(rate: Option<&LinkRate>) -> bool {
    matches!(rate, Some(LinkRate::DvbS2(_) | LinkRate::Rcs2(_)))
}

fn read_frame(entry: &Entry, rate: Option<&LinkRate>) -> Result<Span, Problem> {
    match entry.parse::<Span>()? {
        _ if is_carrier(rate) => {
            Err(entry.problem("the carrier has frames of its own; leave it out"))
        }
        Span::ZERO => Err(entry.problem("a frame takes time; write \"10 ms\", or leave it out")),
        frame => Ok(frame),
    }
}

fn read_policer(entry: Entry) -> Result<TokenBucketConfig, Problem> {
    let mut fields = entry.table()?;
    let policer = TokenBucketConfig::read(&mut fields)?;
    fields.finish()?;
    Ok(policer)
}

fn read_handovers(entry: Entry, rate: Option<&LinkRate>) -> Result<Handovers, Problem> {
    let carrier = entry.problem("a carrier does not hand over; write the rate in steps");
    let handovers = Handovers::read(entry)?;
    if is_carrier(rate) {
        Err(carrier)
    } else {
        Ok(handovers)
    }
}

fn read_outages(entry: Entry, rate: Option<&LinkRate>) -> Result<Outages, Problem> {
    let no_rate = entry.problem("a link without a rate sends at once; write a rate beside it");
    let carrier = entry.problem(
        "a carrier does not pause; write an attenuation of 99 dB in the rate for as long as \
         nothing is received",
    );
    let outages = Outages::read(entry)?;
    match rate {
        None => Err(no_rate),
        Some(_) if is_carrier(rate) => Err(carrier),
        Some(_) => Ok(outages),
    }
}
