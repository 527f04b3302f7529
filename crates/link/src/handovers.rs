//! Handovers: instants at which a link changes from one path to another.

use std::collections::BTreeMap;
use std::fmt;

use bentpipe_units::{Span, Time};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Fields, Problem};
use crate::intervals::Intervals;

/// Handovers of a link, as from one satellite to the next:
/// `{ every = "15 s", phase = "random", gap = "80 ms", in_flight = "lost" }`, or at given times,
/// `{ times = [{ at = "10 s" }, { at = "25 s", gap = "2 s" }], gap = "80 ms", in_flight = "lost"
/// }`.
///
/// In the gap that begins with a handover the link sends nothing, as in an outage: what waits goes
/// on when it ends. `in_flight` says what becomes of packets that are under way at its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handovers {
    /// When they are.
    pub times: HandoverTimes,
    /// The fate of packets in flight.
    pub in_flight: InFlight,
}

/// The times of handovers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandoverTimes {
    /// The time of each and the length of its gap: not empty, in order, a gap ends before the next
    /// begins.
    Given {
        /// The times and gaps.
        times: Vec<(Time, Span)>,
        /// The time after which they begin again; None: never.
        period: Option<Span>,
    },
    /// One at each change of the intervals.
    Every {
        /// At whose ends they are.
        intervals: Intervals,
        /// The gaps, of which one is drawn for each handover, all alike; not empty. Both directions
        /// of a segment draw the same.
        gaps: Vec<Span>,
    },
}

/// The fate of packets that have left the queue before a handover and have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// They are lost.
    Lost,
    /// They arrive when the gap ends, or later, when they would have arrived anyway.
    Delayed,
    /// They arrive by the old path, as if there were no handover.
    Forwarded,
}

const TIMES: &str = "[{ at = \"10 s\" }, { at = \"25 s\" }]";
const EXAMPLES: &str = "{ every = \"15 s\", phase = \"random\", gap = \"80 ms\", in_flight = \
                        \"lost\" } or { times = [{ at = \"10 s\" }, { at = \"25 s\" }], gap = \"80 \
                        ms\", in_flight = \"lost\" }";
/// The most times that are printed one by one.
const LISTED: usize = 6;

impl Handovers {
    pub(crate) fn read(entry: Entry) -> Result<Self, Problem> {
        if !entry.is_table() {
            return Err(entry.problem(&format!("not handovers; write {EXAMPLES}")));
        }
        let mut fields = entry.table()?;
        let times = match fields.take("times") {
            Some(entry) => HandoverTimes::read_given(entry, &mut fields)?,
            None => HandoverTimes::read_every(&mut fields)?,
        };
        let in_flight = InFlight::read(&fields.required("in_flight", InFlight::EXAMPLES)?)?;
        fields.finish()?;
        Ok(Self { times, in_flight })
    }
}

impl InFlight {
    const ALL: [Self; 3] = [Self::Lost, Self::Delayed, Self::Forwarded];
    const EXAMPLES: &str = "\"lost\", \"delayed\" or \"forwarded\"";

    fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Delayed => "delayed",
            Self::Forwarded => "forwarded",
        }
    }

    fn read(entry: &Entry) -> Result<Self, Problem> {
        let found = Self::ALL.into_iter().find(|it| entry.is_text(it.name()));
        found.ok_or_else(|| entry.problem(&format!("write {}", Self::EXAMPLES)))
    }
}

impl HandoverTimes {
    fn read_every(fields: &mut Fields) -> Result<Self, Problem> {
        let intervals = Intervals::required(fields, "15 s")?;
        let entry = fields.required("gap", "\"80 ms\"")?;
        let problem = |message: &str| entry.problem(message);
        let wrong = problem("write a gap, \"80 ms\", or several, [\"60 ms\", \"90 ms\"]");
        let too_long = problem(&format!(
            "a gap must be shorter than from one handover to the next, {}",
            intervals.every
        ));
        let gaps: Vec<Span> = if entry.value().is_array() {
            let items = entry.items().into_iter().flatten();
            items.map(|item| item.parse()).collect::<Result<_, _>>()?
        } else {
            vec![entry.parse()?]
        };
        if gaps.is_empty() {
            Err(wrong)
        } else if gaps.iter().any(|gap| *gap >= intervals.every) {
            Err(too_long)
        } else {
            Ok(Self::Every { intervals, gaps })
        }
    }

    fn read_given(entry: Entry, fields: &mut Fields) -> Result<Self, Problem> {
        let wrong = entry.problem(&format!("write the times like {TIMES}"));
        let usual: Option<Span> = fields.optional("gap")?;
        let Some(items) = entry.items().filter(|items| !items.is_empty()) else {
            return Err(wrong);
        };
        let mut times: Vec<(Time, Span)> = Vec::new();
        for item in items {
            let mut row = item.table()?;
            let at = row.required("at", "\"10 s\"")?;
            let own: Option<Span> = row.optional("gap")?;
            let Some(gap) = own.or(usual) else {
                return Err(row.missing("gap", "\"80 ms\", or gap beside times for all of them"));
            };
            row.finish()?;
            let begin: Time = at.parse()?;
            if let Some((before, gap)) = times.last().filter(|it| it.0 + it.1 >= begin) {
                let end = *before + *gap;
                return Err(at.problem(&format!(
                    "is not after the end of the gap before it, at {end}"
                )));
            }
            times.push((begin, gap));
        }
        let period = fields.take("period");
        let length: Option<Span> = period.as_ref().map(Entry::parse).transpose()?;
        let (last, gap) = times[times.len() - 1];
        match (length, period) {
            (Some(length), Some(entry)) if Time::ZERO + length <= last + gap => {
                let end = last + gap;
                let message = format!("must be longer than until the last gap ends, at {end}");
                Err(entry.problem(&message))
            }
            (period, _) => Ok(Self::Given { times, period }),
        }
    }
}

impl Serialize for Handovers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.times {
            HandoverTimes::Given { times, period } => {
                let rows = times.iter();
                let rows = rows.map(|(at, gap)| {
                    BTreeMap::from([("at", at.to_string()), ("gap", gap.to_string())])
                });
                map.serialize_entry("times", &rows.collect::<Vec<_>>())?;
                if let Some(period) = period {
                    map.serialize_entry("period", period)?;
                }
            }
            HandoverTimes::Every { intervals, gaps } => {
                for (name, value) in intervals.fields() {
                    map.serialize_entry(name, &value)?;
                }
                match gaps.as_slice() {
                    [gap] => map.serialize_entry("gap", gap)?,
                    gaps => map.serialize_entry("gap", gaps)?,
                }
            }
        }
        map.serialize_entry("in_flight", self.in_flight.name())?;
        map.end()
    }
}

/// For people.
impl fmt::Display for Handovers {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let gaps: Vec<Span> = match &self.times {
            HandoverTimes::Given { times, period } => {
                let (first, last) = (times[0].0, times[times.len() - 1].0);
                if times.len() > LISTED {
                    write!(f, "{} from {first} to {last}", times.len())?;
                } else {
                    let each: Vec<String> = times.iter().map(|(at, _)| at.to_string()).collect();
                    write!(f, "at {}", each.join(", "))?;
                }
                if let Some(period) = period {
                    write!(f, ", again every {period}")?;
                }
                times.iter().map(|(_, gap)| *gap).collect()
            }
            HandoverTimes::Every { intervals, gaps } => {
                write!(f, "{intervals}")?;
                gaps.clone()
            }
        };
        let least = gaps.iter().min().copied().unwrap_or(Span::ZERO);
        let most = gaps.iter().max().copied().unwrap_or(Span::ZERO);
        if least == most {
            write!(f, ", gap {least}")?;
        } else {
            write!(f, ", gaps {least} to {most}")?;
        }
        write!(f, ", in flight: {}", self.in_flight.name())
    }
}
