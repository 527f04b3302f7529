//! How many bits a link carries in a second, and how that changes.

use std::fmt;
use std::path::Path;

use bentpipe_units::{Rate, Ratio, Size, Span, Time};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Fields, Problem};
use crate::intervals::Intervals;
use crate::mahimahi;
use crate::satellite::{self, DvbS2, Rcs2, Reception};
use crate::sources::Source;
use crate::steps;

/// The rate of a link over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkRate {
    /// `"20 Mbit/s"`.
    Fixed(Rate),
    /// `{ steps = [["0 s", "50 Mbit/s"], ["5 s", "10 Mbit/s"]] }`, or from a file.
    Steps(RateSteps),
    /// `{ mean = "150 Mbit/s", spread = "20 %", every = "1 s" }`.
    Random(RandomRate),
    /// `{ full = "2 Mbit/s", floor = "128 kbit/s", request_every = "1 s", granted_after = "550 ms",
    /// hold = "2 s" }`.
    OnDemand(OnDemand),
    /// `{ standard = "dvb-s2", symbol_rate = "40 MBd", es_n0 = "12 dB" }`.
    DvbS2(Box<DvbS2>),
    /// `{ standard = "dvb-rcs2", symbol_rate = "1.2 MBd", es_n0 = "9 dB" }`.
    Rcs2(Box<Rcs2>),
}

/// A rate that changes at given times, to the nanosecond and in the middle of a packet if need be.
/// The last rate holds for ever, or until the steps begin again: `period = "10 s"`. A rate of 0
/// lets nothing through as long as it holds.
///
/// `{ trace = "file" }` takes the steps from a trace in mahimahi's format. In JSON the content
/// travels along as `steps` and `period`, and the file is not read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSteps {
    /// The file that the steps come from.
    pub trace: Option<String>,
    /// The rates, each with the time from which on it holds; not empty, from time 0, in order.
    pub steps: Vec<(Time, Rate)>,
    /// The time after which the steps begin again; None: never.
    pub period: Option<Span>,
}

/// A rate that is drawn anew at intervals from the trial's seed: any whole number of bit/s from
/// `mean - spread` to `mean + spread`, all alike, so that its mean in the long run is `mean`.
///
/// `within = [{ spread = "20 %", every = "100 ms" }]` multiplies it with further factors, each
/// drawn for separate intervals: from 80 % to 120 %, all alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomRate {
    /// The mean in the long run.
    pub mean: Rate,
    /// The largest difference from it, as a share of it.
    pub spread: Ratio,
    /// The intervals at whose ends it changes.
    pub intervals: Intervals,
    /// The largest difference of each further factor from 1, and the intervals for which it holds.
    pub within: Vec<(Ratio, Intervals)>,
}

/// Capacity that is assigned on demand; `allocation.rs` says how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnDemand {
    /// The most that is granted.
    pub full: Rate,
    /// The rate that is always granted.
    pub floor: Rate,
    /// From one opportunity to request to the next; the first is at 0.
    pub request_every: Span,
    /// From the request to its grant.
    pub granted_after: Span,
    /// The silence after which a link is back at the floor.
    pub hold: Span,
}

const EXAMPLES: &str = "\"20 Mbit/s\", { steps = [[\"0 s\", \"50 Mbit/s\"], [\"5 s\", \"10 \
                        Mbit/s\"]] }, { mean = \"150 Mbit/s\", spread = \"20 %\", every = \"1 s\" \
                        }, { full = \"2 Mbit/s\", floor = \"128 kbit/s\", request_every = \"1 \
                        s\", granted_after = \"550 ms\", hold = \"2 s\" }";
/// The most steps that are printed one by one.
const LISTED: usize = 6;
const STEPS: [&str; 2] = ["50 Mbit/s", "10 Mbit/s"];

impl LinkRate {
    /// None: `"unlimited"`.
    /// `mtu` is the link's, which packets of terminals' sources must not exceed.
    pub(crate) fn read(
        entry: Entry,
        folder: &Path,
        mtu: Option<Size>,
    ) -> Result<Option<Self>, Problem> {
        if entry.is_text("unlimited") {
            return Ok(None);
        }
        if !entry.is_table() {
            let hint = "\"20 Mbit/s\" or \"unlimited\"";
            return above_zero(&entry, hint).map(|rate| Some(Self::Fixed(rate)));
        }
        let example = satellite::EXAMPLE;
        let unknown = entry.problem(&format!("not a rate; write {EXAMPLES}, or {example}"));
        let mut fields = entry.table()?;
        let rate = if fields.has("steps") || fields.has("trace") {
            Self::Steps(RateSteps::read(&mut fields, folder)?)
        } else if fields.has("mean") {
            Self::Random(RandomRate::read(&mut fields)?)
        } else if fields.has("standard") {
            Self::read_carrier(&mut fields, folder, mtu)?
        } else if fields.has("full") {
            Self::OnDemand(OnDemand::read(&mut fields)?)
        } else {
            return Err(unknown);
        };
        fields.finish()?;
        Ok(Some(rate))
    }

    fn read_carrier(
        fields: &mut Fields,
        folder: &Path,
        mtu: Option<Size>,
    ) -> Result<Self, Problem> {
        let standard = fields.required("standard", "\"dvb-s2\"")?;
        Ok(if standard.is_text("dvb-rcs2") {
            Self::Rcs2(Box::new(Rcs2::read(fields, folder, mtu, &standard)?))
        } else {
            Self::DvbS2(Box::new(DvbS2::read(fields, folder, mtu, &standard)?))
        })
    }

    /// The one figure of this rate: queue sizes in BDP or time refer to it, and summaries print it.
    /// The highest it can be; of a trace, whose single milliseconds say little, the mean.
    #[must_use]
    pub fn nominal(&self) -> Rate {
        match self {
            Self::Fixed(rate) => *rate,
            Self::Steps(steps) if steps.trace.is_some() => steps.mean(),
            Self::Steps(steps) => steps.rates().max().unwrap_or(Rate::from_bps(0)),
            Self::Random(random) => Rate::from_bps(random.highest()),
            Self::OnDemand(demand) => demand.full,
            Self::DvbS2(carrier) => carrier.nominal(),
            Self::Rcs2(carrier) => carrier.nominal(),
        }
    }

    /// The sources of the terminals that share it, each with the terminal's number.
    pub(crate) fn sources(&self) -> Vec<(usize, Source)> {
        match self {
            Self::DvbS2(carrier) => carrier.sources(),
            Self::Rcs2(carrier) => carrier.sources(),
            _ => Vec::new(),
        }
    }

    /// The reception of the trial's terminal, or of its bursts, if it is a carrier.
    pub(crate) fn reception(&self) -> Option<&Reception> {
        match self {
            Self::DvbS2(carrier) => Some(&carrier.own.reception),
            Self::Rcs2(carrier) => Some(&carrier.own.reception),
            _ => None,
        }
    }

    /// Whether it never changes.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        match self {
            Self::Fixed(_) => true,
            Self::DvbS2(carrier) => carrier.is_steady(),
            Self::Steps(_) | Self::Random(_) | Self::OnDemand(_) | Self::Rcs2(_) => false,
        }
    }

    /// The lowest rate it can be.
    #[must_use]
    pub fn lowest(&self) -> Rate {
        match self {
            Self::Fixed(rate) => *rate,
            Self::Steps(steps) => steps.rates().min().unwrap_or(Rate::from_bps(0)),
            Self::Random(random) => Rate::from_bps(random.lowest()),
            Self::OnDemand(demand) => demand.floor,
            Self::DvbS2(carrier) => carrier.lowest(),
            Self::Rcs2(carrier) => carrier.lowest(),
        }
    }
}

pub(crate) fn above_zero(entry: &Entry, hint: &str) -> Result<Rate, Problem> {
    let rate: Rate = entry.parse()?;
    if rate.bps() == 0 {
        return Err(entry.problem(&format!("lets nothing through; write {hint}")));
    }
    Ok(rate)
}

impl RateSteps {
    fn read(fields: &mut Fields, folder: &Path) -> Result<Self, Problem> {
        let file = fields.take("trace");
        let given = fields.take("steps");
        let trace = file.as_ref().map(Entry::text).transpose()?;
        if let (Some(file), Some(name), None) = (&file, &trace, &given) {
            let read = mahimahi::read(&folder.join(name));
            let (steps, period) = read.map_err(|wrong| file.problem(&wrong))?;
            let (period, trace) = (Some(period), trace);
            return Ok(Self {
                trace,
                steps,
                period,
            });
        }
        let entry = given.ok_or_else(|| fields.missing("steps", EXAMPLES))?;
        let steps: Vec<(Time, Rate)> = steps::read(&entry, STEPS)?;
        let period = steps::read_period(fields, &steps)?;
        let read = Self {
            trace,
            steps,
            period,
        };
        read.check(&entry)?;
        Ok(read)
    }

    fn check(&self, steps: &Entry) -> Result<(), Problem> {
        let last = self.steps[self.steps.len() - 1];
        match self.period {
            None if last.1.bps() == 0 => {
                Err(steps.problem("the last rate holds for ever, so it must be above 0"))
            }
            _ if self.rates().all(|rate| rate.bps() == 0) => {
                Err(steps.problem("lets nothing through; one rate must be above 0"))
            }
            _ => Ok(()),
        }
    }

    fn rates(&self) -> impl Iterator<Item = Rate> {
        self.steps.iter().map(|(_, rate)| *rate)
    }

    /// The mean over a period; without one, the last rate.
    fn mean(&self) -> Rate {
        let Some(period) = self.period else {
            return self.steps[self.steps.len() - 1].1;
        };
        let ends = self.steps.iter().skip(1).map(|(from, _)| *from);
        let ends = ends.chain(std::iter::once(Time::ZERO + period));
        let bit_nanos: u128 = self
            .steps
            .iter()
            .zip(ends)
            .map(|((from, rate), end)| {
                u128::from(rate.bps()) * u128::from((end - *from).as_nanos())
            })
            .sum();
        let bps = bit_nanos / u128::from(period.as_nanos());
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

impl RandomRate {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let mean = fields.required("mean", "\"150 Mbit/s\"")?;
        Ok(Self {
            mean: above_zero(&mean, "\"150 Mbit/s\"")?,
            spread: fields.required("spread", "\"20 %\"")?.parse()?,
            intervals: Intervals::required(fields, "1 s")?,
            within: Intervals::read_within(fields, |fields| {
                fields.required("spread", "\"20 %\"")?.parse()
            })?,
        })
    }

    /// The largest difference from the mean, without further factors.
    pub(crate) fn deviation(&self) -> u64 {
        times_ppb(self.mean.bps(), self.spread.ppb())
    }

    fn lowest(&self) -> u64 {
        let own = self.mean.bps() - self.deviation();
        let factors = self.within.iter();
        factors.fold(own, |bps, (spread, _)| {
            times_ppb(bps, Ratio::ONE.ppb() - spread.ppb())
        })
    }

    fn highest(&self) -> u64 {
        let own = self.mean.bps().saturating_add(self.deviation());
        let factors = self.within.iter();
        factors.fold(own, |bps, (spread, _)| {
            times_ppb(bps, Ratio::ONE.ppb() + spread.ppb())
        })
    }
}

/// A rate times a factor in billionths, rounded down.
pub(crate) fn times_ppb(bps: u64, ppb: u64) -> u64 {
    let share = u128::from(bps) * u128::from(ppb);
    u64::try_from(share / u128::from(Ratio::ONE.ppb())).unwrap_or(u64::MAX)
}

impl OnDemand {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let full = fields.required("full", "\"2 Mbit/s\"")?;
        let floor = fields.required("floor", "\"128 kbit/s\"")?;
        let every = fields.required("request_every", "\"1 s\"")?;
        let demand = Self {
            full: above_zero(&full, "\"2 Mbit/s\"")?,
            floor: above_zero(&floor, "\"128 kbit/s\"")?,
            request_every: every.parse()?,
            granted_after: fields.required("granted_after", "\"550 ms\"")?.parse()?,
            hold: fields.required("hold", "\"2 s\"")?.parse()?,
        };
        if demand.floor > demand.full {
            let message = format!("above the full rate, {}", demand.full);
            return Err(floor.problem(&message));
        }
        if demand.request_every < Span::from_millis(1) {
            return Err(every.problem("too short; write 1 ms or more, as in \"1 s\""));
        }
        Ok(demand)
    }
}

impl Serialize for LinkRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self {
            Self::Fixed(rate) => return rate.serialize(serializer),
            _ => serializer.serialize_map(None)?,
        };
        match self {
            Self::Fixed(_) => {}
            Self::Steps(steps) => {
                if let Some(trace) = &steps.trace {
                    map.serialize_entry("trace", trace)?;
                }
                map.serialize_entry("steps", &steps.steps)?;
                if let Some(period) = steps.period {
                    map.serialize_entry("period", &period)?;
                }
            }
            Self::Random(random) => {
                map.serialize_entry("mean", &random.mean)?;
                map.serialize_entry("spread", &random.spread)?;
                for (name, value) in random.intervals.fields() {
                    map.serialize_entry(name, &value)?;
                }
                if !random.within.is_empty() {
                    let rows = random.within.iter();
                    let rows = rows.map(|(spread, every)| every.row("spread", spread.to_string()));
                    map.serialize_entry("within", &rows.collect::<Vec<_>>())?;
                }
            }
            Self::OnDemand(demand) => {
                map.serialize_entry("full", &demand.full)?;
                map.serialize_entry("floor", &demand.floor)?;
                map.serialize_entry("request_every", &demand.request_every)?;
                map.serialize_entry("granted_after", &demand.granted_after)?;
                map.serialize_entry("hold", &demand.hold)?;
            }
            Self::DvbS2(carrier) => carrier.serialize_into(&mut map)?,
            Self::Rcs2(carrier) => carrier.serialize_into(&mut map)?,
        }
        map.end()
    }
}

/// For people.
impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Fixed(rate) => rate.fmt(f),
            Self::Steps(RateSteps {
                trace: Some(file), ..
            }) => write!(f, "{} on average as in the trace {file}", self.nominal()),
            Self::Steps(steps) => {
                if steps.steps.len() > LISTED {
                    let (count, most) = (steps.steps.len(), self.nominal());
                    write!(f, "{} to {most} in {count} steps", self.lowest())?;
                } else {
                    write!(f, "{}", steps.steps[0].1)?;
                    for (from, rate) in &steps.steps[1..] {
                        write!(f, ", from {from} {rate}")?;
                    }
                }
                match steps.period {
                    Some(period) => write!(f, ", again every {period}"),
                    None => Ok(()),
                }
            }
            Self::Random(random) => {
                let (least, most) = (self.lowest(), self.nominal());
                write!(f, "{least} to {most}, drawn {}", random.intervals)?;
                let mut each = random.within.iter();
                each.try_for_each(|(_, every)| write!(f, " and {every}"))
            }
            Self::OnDemand(demand) => {
                write!(f, "{}, on demand up to {}", demand.floor, demand.full)
            }
            Self::DvbS2(carrier) => carrier.fmt(f),
            Self::Rcs2(carrier) => carrier.fmt(f),
        }
    }
}
