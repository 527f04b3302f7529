//! Times at which a link sends nothing.

use std::collections::BTreeMap;

use bentpipe_units::{Span, Time};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Fields, Problem};
use crate::intervals::Intervals;

/// Outages of a link: `[{ at = "10 s", for = "2 s" }]`, which is short for `{ times = … }`, or
/// `{ every = "15 s", for = "100 ms" }`.
///
/// While one lasts, the rate is 0. What waits, and what is in the middle of its transmission, goes
/// on when it ends; or, with `queue = "flush"`, is dropped when it begins, as is what arrives while
/// it lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outages {
    /// When there is an outage.
    pub times: OutageTimes,
    /// Whether an outage empties the queue.
    pub flush: bool,
}

/// The times at which there are outages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutageTimes {
    /// The beginning and the length of each: not empty, in order, one after the other.
    Given(Vec<(Time, Span)>),
    /// One at each change of the intervals.
    Every {
        /// At whose ends they begin.
        intervals: Intervals,
        /// How long each lasts.
        lasts: Span,
    },
}

const EXAMPLE: &str = "[{ at = \"10 s\", for = \"2 s\" }]";

impl Outages {
    pub(crate) fn read(entry: Entry) -> Result<Self, Problem> {
        if !entry.is_table() {
            let times = OutageTimes::Given(given(entry)?);
            return Ok(Self {
                times,
                flush: false,
            });
        }
        let mut fields = entry.table()?;
        let times = match fields.take("times") {
            Some(entry) => OutageTimes::Given(given(entry)?),
            None => OutageTimes::read_every(&mut fields)?,
        };
        let flush = match fields.take("queue") {
            None => false,
            Some(entry) if entry.is_text("keep") => false,
            Some(entry) if entry.is_text("flush") => true,
            Some(entry) => return Err(entry.problem("write \"keep\" or \"flush\"")),
        };
        fields.finish()?;
        Ok(Self { times, flush })
    }

    /// Whether there is one at a time, and when that changes, or could.
    pub(crate) fn at(&self, at: Time) -> (bool, Time) {
        match &self.times {
            OutageTimes::Given(times) => {
                let begun = times.partition_point(|(begin, _)| *begin <= at);
                let last = begun
                    .checked_sub(1)
                    .map(|last| times[last].0 + times[last].1);
                let next = times.get(begun).map_or(Time::NEVER, |(begin, _)| *begin);
                match last {
                    Some(end) if at < end => (true, end),
                    _ => (false, next),
                }
            }
            OutageTimes::Every { intervals, lasts } => match intervals.since_change(at) {
                Some(since) if since < *lasts => (true, at - since + *lasts),
                _ => (false, intervals.changes(at).1),
            },
        }
    }
}

impl OutageTimes {
    fn read_every(fields: &mut Fields) -> Result<Self, Problem> {
        let intervals = Intervals::required(fields, "15 s")?;
        let entry = fields.required("for", "\"100 ms\"")?;
        let lasts = duration(&entry)?;
        if lasts >= intervals.every {
            let message = format!(
                "must be shorter than from one to the next, {}",
                intervals.every
            );
            return Err(entry.problem(&message));
        }
        Ok(Self::Every { intervals, lasts })
    }
}

fn given(entry: Entry) -> Result<Vec<(Time, Span)>, Problem> {
    let wrong = entry.problem(&format!(
        "write outages like {EXAMPLE} or {{ every = \"15 s\", for = \"100 ms\" }}"
    ));
    let Some(items) = entry.items().filter(|items| !items.is_empty()) else {
        return Err(wrong);
    };
    let mut times: Vec<(Time, Span)> = Vec::new();
    for item in items {
        let mut fields = item.table()?;
        let at = fields.required("at", "\"10 s\"")?;
        let begin: Time = at.parse()?;
        let lasts = duration(&fields.required("for", "\"2 s\"")?)?;
        fields.finish()?;
        if let Some((before, lasted)) = times.last().filter(|it| it.0 + it.1 > begin) {
            let end = *before + *lasted;
            return Err(at.problem(&format!(
                "begins before the one before it has ended, at {end}"
            )));
        }
        times.push((begin, lasts));
    }
    Ok(times)
}

fn duration(entry: &Entry) -> Result<Span, Problem> {
    match entry.parse::<Span>()? {
        Span::ZERO => Err(entry.problem("an outage takes time; write \"100 ms\"")),
        lasts => Ok(lasts),
    }
}

impl Serialize for Outages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let flush = ("queue", "flush");
        match &self.times {
            OutageTimes::Given(times) => {
                let rows = times.iter();
                let rows = rows.map(|(at, lasts)| {
                    BTreeMap::from([("at", at.to_string()), ("for", lasts.to_string())])
                });
                let rows: Vec<_> = rows.collect();
                if !self.flush {
                    return rows.serialize(serializer);
                }
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("times", &rows)?;
                map.serialize_entry(flush.0, flush.1)?;
                map.end()
            }
            OutageTimes::Every { intervals, lasts } => {
                let flush = self.flush.then(|| (flush.0, flush.1.to_owned()));
                let lasts = ("for", lasts.to_string());
                serializer.collect_map(intervals.fields().chain([lasts]).chain(flush))
            }
        }
    }
}
