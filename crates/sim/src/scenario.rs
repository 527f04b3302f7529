//! Prints a scenario as it is understood: resolved, and summed up for people and programs that
//! parse no units.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;

use bentpipe_link::{
    Delay, Direction, DirectionConfig, LinkRate, LinkTimeline, Loss, Quantity, Scenario,
    SegmentName,
};
use bentpipe_units::{Rate, Time};
use serde_json::{Value, json};

use bentpipe_trial::path_facts;

use crate::drawing::{self, text};

/// Prints the scenario in `file` with `sets` applied, as one JSON object.
pub fn print(file: &Path, sets: &[(String, String)]) -> Result<(), Box<dyn Error>> {
    let scenario = Scenario::load(file, sets)?;
    writeln!(
        stdout(),
        "{}",
        json!({ "summary": summary(&scenario), "courses": timelines(&scenario),
            "path": drawing::path(&scenario), "scenario": scenario })
    )?;
    Ok(())
}

/// The figures of a scenario; queue, delay and frame are those of the satellite segment.
/// `*_rate_bps` is what stands for a rate that changes; how it does stands beside it.
fn summary(scenario: &Scenario) -> Value {
    let facts = path_facts(scenario);
    let [forward, back] = Direction::BOTH.map(|direction| part(scenario, direction));
    json!({
        "name": scenario.name,
        "title": scenario.title,
        "source": scenario.source,
        "notes": scenario.notes,
        "rtt_ms": facts.rtt_ms,
        "timeout_s": scenario.timeout.as_secs_f64(),
        "forward_rate_bps": facts.forward_rate_bps,
        "return_rate_bps": facts.return_rate_bps,
        "forward_rate_lowest_bps": forward.rate_lowest_bps,
        "return_rate_lowest_bps": back.rate_lowest_bps,
        "forward_rate_changes": forward.rate_changes,
        "return_rate_changes": back.rate_changes,
        "forward_queue_bytes": facts.forward_queue_bytes,
        "return_queue_bytes": facts.return_queue_bytes,
        "forward_marks": facts.forward_marks,
        "return_marks": facts.return_marks,
        "mtu_bytes": facts.mtu_bytes,
        "forward_queue": forward.queue,
        "return_queue": back.queue,
        "forward_loss": forward.loss,
        "return_loss": back.loss,
        "forward_delay": forward.delay,
        "return_delay": back.delay,
    })
}

/// What changes with time, by the key of the scenario that it stands in; nothing else is there.
fn timelines(scenario: &Scenario) -> Value {
    let each = scenario.timelines().into_iter();
    each.map(|timeline| {
        let mut drawn = json_timeline(&timeline);
        if let (Quantity::Rate, Some(modcods)) = (timeline.quantity, modcods(scenario, &timeline)) {
            drawn["modcods"] = modcods;
        }
        (key(&timeline), drawn)
    })
    .collect()
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

fn key(timeline: &LinkTimeline) -> String {
    let segment = match timeline.segment {
        SegmentName::Access => "access",
        SegmentName::Satellite => "satellite",
        SegmentName::Ground => "ground",
    };
    let quantity = match timeline.quantity {
        Quantity::Rate => "rate",
        Quantity::Delay => "delay",
        Quantity::Loss => "loss",
        Quantity::EsN0 => "es_n0",
    };
    format!("{segment}.{}.{quantity}", timeline.direction.name())
}

/// In Mbit/s, milliseconds, per cent, or decibels.
fn json_timeline(timeline: &LinkTimeline) -> Value {
    let (unit, in_unit) = match timeline.quantity {
        Quantity::Rate => ("Mbit/s", 1e6),
        Quantity::Delay => ("ms", 1e6),
        Quantity::Loss => ("%", 1e7),
        Quantity::EsN0 => ("dB", 1e3),
    };
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let shown = |value: i64| value as f64 / in_unit;
    let parts: Vec<f64> = timeline.parts.iter().map(|value| shown(*value)).collect();
    json!({
        "unit": unit,
        "length_s": timeline.length.as_secs_f64(),
        "repeats": timeline.repeats,
        "last_from_s": timeline.last_from.map(|at| (at - Time::ZERO).as_secs_f64()),
        "drawn": timeline.drawn,
        "least": shown(timeline.least),
        "median": shown(timeline.median),
        "most": shown(timeline.most),
        "mean": shown(timeline.mean),
        "parts": parts,
    })
}

/// What is told of one direction. What does not change is not told of.
struct Part {
    rate_lowest_bps: Option<u64>,
    rate_changes: Option<String>,
    queue: String,
    loss: String,
    delay: Option<String>,
}

fn part(scenario: &Scenario, direction: Direction) -> Part {
    let link = scenario.satellite.direction(direction);
    let steady = scenario.is_steady(direction);
    let lowest = scenario.lowest_rate(direction).filter(|_| !steady);
    let lowest = lowest.filter(|lowest| scenario.rate(direction) > Some(*lowest));
    let rate = link.rate.as_ref().filter(|rate| !rate.is_steady());
    Part {
        rate_lowest_bps: lowest.map(Rate::bps),
        rate_changes: rate.map(ToString::to_string),
        queue: text(&serde_json::to_value(link.queue).unwrap_or_default()),
        loss: losses(scenario, direction),
        delay: delay(link),
    }
}

/// What is lost on the way: of the satellite, and of other segments with their names; `none` if
/// nothing is.
fn losses(scenario: &Scenario, direction: Direction) -> String {
    let beside = [("access", &scenario.access), ("ground", &scenario.ground)];
    let beside = beside.map(|(name, segment)| Some((name, segment.as_ref()?.direction(direction))));
    let own = losses_of(scenario.satellite.direction(direction));
    let of_others = beside.into_iter().flatten().flat_map(|(name, link)| {
        let losses = losses_of(link).into_iter();
        losses.map(move |loss| format!("{loss} ({name})"))
    });
    let all: Vec<String> = own.into_iter().chain(of_others).collect();
    if all.is_empty() {
        return Loss::None.to_string();
    }
    all.join(", ")
}

/// What a link loses: by its model, and by bit errors.
fn losses_of(link: &DirectionConfig) -> Vec<String> {
    let model = (link.loss != Loss::None).then(|| link.loss.to_string());
    let bits = link.bit_errors.map(|rate| format!("{rate} of bits"));
    model.into_iter().chain(bits).collect()
}

/// How the time that packets travel changes; None if it doesn't.
fn delay(link: &DirectionConfig) -> Option<String> {
    let changes = !matches!(link.delay, Delay::Fixed(_));
    let delay = changes.then(|| link.delay.to_string());
    let frame = link.frame.map(|frame| format!("in frames of {frame}"));
    let reorder = link.reorder.map(|it| it.to_string());
    let aggregate = link.aggregate.map(|it| it.to_string());
    let handovers = link.handovers.as_ref().map(|it| format!("handovers {it}"));
    let duplicate = link.duplicate.map(|it| it.to_string());
    let all: Vec<String> = [delay, handovers, frame, aggregate, duplicate, reorder]
        .into_iter()
        .flatten()
        .collect();
    (!all.is_empty()).then(|| all.join(", "))
}
