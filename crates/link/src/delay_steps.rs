//! A delay that is given over time.

use std::fmt;
use std::path::Path;

use bentpipe_units::{Span, Time};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Fields, Problem};
use crate::packed_text::file_text;
use crate::serving_satellite::{COLUMNS, ServingSatellite};
use crate::steps;

/// A delay that is given over time. A delay holds from its time on until the next, the last one for
/// ever, or until the steps begin again: `period = "600 s"`. A packet gets the delay of the instant
/// at which its last bit is sent, and the order is kept.
///
/// With `between = "linear"` the delay changes evenly from one step to the next. `ends = "600 s"`
/// says that nothing is known after that time: a scenario whose timeout is later is refused.
///
/// `{ trace = "file.csv" }` takes the steps from a file with the header `time_s,delay_ms` and a row
/// for each step, both columns decimal numbers that are whole nanoseconds. The first time is 0 and
/// they increase. Where further columns are `satellite`, `elevation_deg` and `in_view`, figures
/// show these; others are for people. A relative path is relative to the scenario file. In JSON the
/// content travels along as `steps` and `satellites`, and the file is not read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelaySteps {
    /// The file that the steps come from.
    pub trace: Option<String>,
    /// The delays, each with the time from which on it holds; not empty, from time 0, in order.
    pub steps: Vec<(Time, Span)>,
    /// The satellite of each step; None: nothing is known of satellites.
    pub satellites: Option<Vec<ServingSatellite>>,
    /// Whether the delay changes evenly between steps.
    pub linear: bool,
    /// The time after which the steps begin again; None: never.
    pub period: Option<Span>,
    /// The time up to which the delay is known; None: the last holds for ever.
    pub ends: Option<Span>,
}

const EXAMPLE: &str = "[[\"0 s\", \"300 ms\"], [\"15 s\", \"280 ms\"]]";
const HEADER: &str = "time_s,delay_ms";
/// The most steps that are printed one by one.
const LISTED: usize = 6;
/// The parts of a step, of a delay that changes evenly, which a timeline takes as constant.
const PIECES: u64 = 16;

impl DelaySteps {
    pub(crate) fn read(fields: &mut Fields, folder: &Path) -> Result<Self, Problem> {
        let file = fields.take("trace");
        let trace = file.as_ref().map(Entry::text).transpose()?;
        let given = fields.take("satellites");
        let (steps, satellites) = match (fields.take("steps"), &file, &trace) {
            (Some(entry), ..) => {
                let steps = steps::read(&entry, ["300 ms", "280 ms"])?;
                let satellites = given.map(|entry| ServingSatellite::read_all(&entry, steps.len()));
                (steps, satellites.transpose()?)
            }
            (None, Some(file), Some(name)) => {
                if let Some(entry) = given {
                    return Err(entry.problem("the trace has them already; leave them out"));
                }
                read_file(&folder.join(name)).map_err(|wrong| file.problem(&wrong))?
            }
            _ => return Err(fields.missing("steps", EXAMPLE)),
        };
        let linear = match fields.take("between") {
            None => false,
            Some(entry) if entry.is_text("constant") => false,
            Some(entry) if entry.is_text("linear") => true,
            Some(entry) => return Err(entry.problem("write \"constant\" or \"linear\"")),
        };
        let last = steps[steps.len() - 1].0;
        let period = after_last(fields.take("period"), last)?;
        let ends = fields.take("ends");
        if let (Some(_), Some(entry)) = (period, &ends) {
            return Err(entry.problem("either period or ends, not both; leave one out"));
        }
        Ok(Self {
            trace,
            steps,
            satellites,
            linear,
            period,
            ends: after_last(ends, last)?,
        })
    }

    /// The smallest delay of all.
    pub(crate) fn least(&self) -> Span {
        self.delays().min().unwrap_or(Span::ZERO)
    }

    fn delays(&self) -> impl Iterator<Item = Span> {
        self.steps.iter().map(|(_, delay)| *delay)
    }

    /// The value just before a time, later than 0, of a quantity that each step has and that
    /// changes evenly: towards the next step's, or after the last one not at all.
    pub(crate) fn before(&self, end: Time, of: impl Fn(usize) -> i64) -> i64 {
        let instant = Time::from_nanos(end.as_nanos() - 1);
        let (index, until) = steps::in_period(&self.steps, self.period, instant);
        let Some((to, _)) = self.steps.get(index + 1) else {
            return of(index);
        };
        let length = (*to - self.steps[index].0).as_nanos();
        let past = length - (until - end).as_nanos();
        let (first, next) = (i128::from(of(index)), i128::from(of(index + 1)));
        let change = (next - first) * i128::from(past) / i128::from(length);
        i64::try_from(first + change).expect("no more than the greater of both")
    }

    /// The delay at a time, and until when it may be taken as constant for a figure; packets take
    /// it as it is at their time.
    pub(crate) fn at(&self, at: Time) -> (Span, Time) {
        let (index, until) = steps::in_period(&self.steps, self.period, at);
        let (from, delay) = self.steps[index];
        let Some((to, next)) = self.steps.get(index + 1).filter(|_| self.linear) else {
            return (delay, until);
        };
        let length = *to - from;
        let past = length.as_nanos() - (until - at).as_nanos();
        let nanos = between(delay.as_nanos(), next.as_nanos(), past, length.as_nanos());
        let piece = Span::from_nanos(length.as_nanos().div_ceil(PIECES));
        (Span::from_nanos(nanos), until.min(at + piece))
    }
}

/// The value after `past` of `length`, where one value changes evenly into another, rounded
/// towards the first.
fn between(first: u64, last: u64, past: u64, length: u64) -> u64 {
    let share = u128::from(first.abs_diff(last)) * u128::from(past) / u128::from(length);
    let share = u64::try_from(share).expect("no more than the difference");
    if last >= first {
        first + share
    } else {
        first - share
    }
}

/// A time that must be later than the last step.
fn after_last(entry: Option<Entry>, last: Time) -> Result<Option<Span>, Problem> {
    let Some(entry) = entry else {
        return Ok(None);
    };
    let length: Span = entry.parse()?;
    if Time::ZERO + length <= last {
        let message = format!("must be longer than the time of the last step, {last}");
        return Err(entry.problem(&message));
    }
    Ok(Some(length))
}

/// Steps, and the satellite of each.
type Read = (Vec<(Time, Span)>, Option<Vec<ServingSatellite>>);

fn read_file(path: &Path) -> Result<Read, String> {
    let text =
        file_text(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut lines = text.lines().enumerate();
    let header = lines.next().map_or("", |(_, header)| header);
    let names: Vec<&str> = header.split(',').collect();
    let more = header.strip_prefix(HEADER);
    if !more.is_some_and(|more| more.is_empty() || more.starts_with(',')) {
        return Err(format!("line 1: the header must be \"{HEADER}\""));
    }
    let place = |column: &str| names.iter().position(|name| *name == column);
    let places: Option<Vec<usize>> = COLUMNS.into_iter().map(place).collect();
    let (mut steps, mut satellites) = (Vec::new(), Vec::new());
    for (index, line) in lines {
        let wrong = |what: &str| format!("line {}: {line}: {what}", index + 1);
        let values: Vec<&str> = line.split(',').collect();
        let step = match values.as_slice() {
            [time, delay, ..] if values.len() == names.len() => step(time, delay),
            _ => None,
        };
        let step = step.ok_or_else(|| {
            wrong("a row is a time in seconds and a delay in milliseconds, like 15,300")
        })?;
        steps.push(step);
        steps::check_order(&steps).map_err(|what| wrong(&what))?;
        if let Some([satellite, elevation, in_view]) = places.as_deref() {
            let row = [values[*satellite], values[*elevation], values[*in_view]];
            satellites.push(ServingSatellite::read(row).map_err(|what| wrong(&what))?);
        }
    }
    if steps.is_empty() {
        Err("no row after the header".to_owned())
    } else {
        Ok((steps, places.map(|_| satellites)))
    }
}

fn step(time: &str, delay: &str) -> Option<(Time, Span)> {
    Some((
        format!("{time}s").parse().ok()?,
        format!("{delay}ms").parse().ok()?,
    ))
}

impl Serialize for DelaySteps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(trace) = &self.trace {
            map.serialize_entry("trace", trace)?;
        }
        map.serialize_entry("steps", &self.steps)?;
        if let Some(satellites) = &self.satellites {
            map.serialize_entry("satellites", satellites)?;
        }
        if self.linear {
            map.serialize_entry("between", "linear")?;
        }
        if let Some(period) = self.period {
            map.serialize_entry("period", &period)?;
        }
        if let Some(ends) = self.ends {
            map.serialize_entry("ends", &ends)?;
        }
        map.end()
    }
}

/// For people.
impl fmt::Display for DelaySteps {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (&self.trace, self.steps.len()) {
            (Some(file), _) => write!(f, "as in the trace {file}")?,
            (None, count) if count > LISTED => {
                let most = self.delays().max().unwrap_or(Span::ZERO);
                write!(f, "{} to {most} in {count} steps", self.least())?;
            }
            (None, _) => {
                write!(f, "{}", self.steps[0].1)?;
                for (from, delay) in &self.steps[1..] {
                    write!(f, ", from {from} {delay}")?;
                }
            }
        }
        match (self.period, self.ends) {
            (Some(period), _) => write!(f, ", again every {period}"),
            (None, Some(ends)) => write!(f, ", until {ends}"),
            (None, None) => Ok(()),
        }
    }
}
