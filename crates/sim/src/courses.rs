//! Prints timelines and interruptions of a scenario's links, as `courses`, for
//! `bentpipe scenarios show` and, of a trial, for the report.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Write, read_to_string, stdin, stdout};

use bentpipe_link::{
    Between, Direction, Interruption, InterruptionKind, LinkRate, LinkTimeline, Quantity, Scenario,
    SegmentName, path_seed,
};
use bentpipe_trial::Seed;
use bentpipe_units::Time;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A trial whose timelines are requested.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CoursesRequest {
    scenario: Scenario,
    seed: Seed,
    /// From the beginning of the trial.
    until_ns: u64,
}

/// Reads a trial's scenario and seed from standard input, as JSON, and prints its timelines.
pub fn from_standard_input() -> Result<(), Box<dyn Error>> {
    let asked: CoursesRequest = serde_json::from_str(&read_to_string(stdin())?)?;
    let CoursesRequest { scenario, seed, .. } = asked;
    let until = Time::from_nanos(asked.until_ns);
    let (courses, interruptions) = of_all_paths(&scenario, seed.0, Some(until), until);
    writeln!(
        stdout(),
        "{}",
        json!({ "courses": courses, "interruptions": interruptions })
    )?;
    Ok(())
}

/// Timelines, of a trial up to a time or as they are without one, and interruptions up to a time,
/// of all paths. Keys of a path beside the first begin as in its file, with `paths.NAME`.
pub fn of_all_paths(
    scenario: &Scenario,
    seed: u64,
    length: Option<Time>,
    until: Time,
) -> (Value, Value) {
    let (mut courses, mut interrupted) = (Map::new(), Map::new());
    let names = scenario.path_names();
    for (number, path) in scenario.each_path().iter().enumerate() {
        let seed = path_seed(seed, number);
        let timelines = match length {
            Some(length) => path.timelines_in_trial(seed, length),
            None => path.timelines(),
        };
        let prefix = match number {
            0 => String::new(),
            _ => format!("paths.{}.", names[number]),
        };
        let prefixed = |table: Value| match table {
            Value::Object(table) => table
                .into_iter()
                .map(|(key, value)| (format!("{prefix}{key}"), value))
                .collect(),
            _ => Map::new(),
        };
        courses.extend(prefixed(all(&timelines, path)));
        interrupted.extend(prefixed(interruptions(&path.interruptions(seed, until))));
    }
    (courses.into(), interrupted.into())
}

/// The quantities that change with time, each by its key in the scenario; no others.
fn all(timelines: &[LinkTimeline], scenario: &Scenario) -> Value {
    let each = timelines.iter().map(|timeline| {
        let mut drawn = json_timeline(timeline);
        if let (Quantity::Rate, Some(modcods)) = (timeline.quantity, modcods(scenario, timeline)) {
            drawn["modcods"] = modcods;
        }
        let quantity = match timeline.quantity {
            Quantity::Rate => "rate",
            Quantity::Delay => "delay",
            Quantity::Loss => "loss",
            Quantity::EsN0 => "es_n0",
            Quantity::Modcod => "modcod",
            Quantity::Elevation => "elevation",
            Quantity::InView => "in_view",
        };
        (key(timeline.segment, timeline.direction, quantity), drawn)
    });
    each.collect()
}

/// The interruptions of links, by key; each with its beginning, its length and the satellite after
/// it.
fn interruptions(found: &[Interruption]) -> Value {
    let mut by_key: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for one in found {
        let kind = match one.kind {
            InterruptionKind::Handover => "handovers",
            InterruptionKind::Outage => "outages",
        };
        let each = by_key.entry(key(one.segment, one.direction, kind));
        each.or_default().push(json!({
            "at_s": seconds(one.from),
            "length_s": (one.until - one.from).as_secs_f64(),
            "satellite": one.satellite,
        }));
    }
    json!(by_key)
}

/// The MODCODs of a carrier with the share of the time for which each is used; None: it is none.
fn modcods(scenario: &Scenario, timeline: &LinkTimeline) -> Option<Value> {
    let link = scenario
        .segment(timeline.segment)?
        .direction(timeline.direction);
    let Some(LinkRate::DvbS2(carrier)) = &link.rate else {
        return None;
    };
    let whole = timeline.length.as_secs_f64();
    let used = carrier.modcods_in(timeline.length).into_iter();
    let shares = used.map(|(name, span)| json!([name, span.as_secs_f64() / whole]));
    Some(shares.collect())
}

fn key(segment: SegmentName, direction: Direction, what: &str) -> String {
    format!("{}.{}.{what}", segment.name(), direction.name())
}

fn seconds(time: Time) -> f64 {
    (time - Time::ZERO).as_secs_f64()
}

/// In Mbit/s, milliseconds, per cent, decibels, degrees, or a number.
fn json_timeline(timeline: &LinkTimeline) -> Value {
    let (unit, in_unit) = match timeline.quantity {
        Quantity::Rate => ("Mbit/s", 1e6),
        Quantity::Delay => ("ms", 1e6),
        Quantity::Loss => ("%", 1e7),
        Quantity::EsN0 | Quantity::Modcod => ("dB", 1e3),
        Quantity::Elevation => ("degrees", 1e3),
        Quantity::InView => ("satellites", 1.0),
    };
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let shown = |value: i64| value as f64 / in_unit;
    let points = timeline.points.iter();
    let points: Vec<_> = points
        .map(|(at, value)| (seconds(*at), shown(*value)))
        .collect();
    let names = timeline.names.iter();
    let names: Vec<_> = names.map(|(at, name)| (seconds(*at), name)).collect();
    let parts: Vec<f64> = timeline.parts.iter().map(|value| shown(*value)).collect();
    json!({
        "unit": unit,
        "length_s": timeline.length.as_secs_f64(),
        "repeats": timeline.repeats,
        "last_from_s": timeline.last_from.map(seconds),
        "drawn": timeline.drawn,
        "least": shown(timeline.least),
        "median": shown(timeline.median),
        "most": shown(timeline.most),
        "mean": shown(timeline.mean),
        "parts": parts,
        "course": points,
        "between": match timeline.between {
            Between::Held => "held",
            Between::Even => "even",
            Between::Mean => "mean",
        },
        "names": names,
    })
}
