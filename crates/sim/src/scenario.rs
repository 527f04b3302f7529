//! Prints a scenario as it is understood: resolved, and summed up for people and programs that
//! parse no units.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;

use bentpipe_link::{Delay, Direction, DirectionConfig, Loss, Scenario};
use bentpipe_units::{Rate, Time};
use serde_json::{Value, json};

use bentpipe_trial::path_facts;

use crate::courses;
use crate::drawing::{self, text};

/// Prints the scenario in `file` with `sets` applied, as one JSON object.
pub fn print(file: &Path, sets: &[(String, String)]) -> Result<(), Box<dyn Error>> {
    let scenario = Scenario::load(file, sets)?;
    let end = Time::ZERO + scenario.timeout;
    let (courses, interruptions) = courses::of_all_paths(&scenario, 0, None, end);
    writeln!(
        stdout(),
        "{}",
        json!({ "summary": summary_of_all_paths(&scenario),
            "courses": courses,
            "interruptions": interruptions,
            "path": drawing::all_paths(&scenario), "scenario": scenario })
    )?;
    Ok(())
}

/// The figures of the first path; where there are several, `paths` has those of each with its name.
fn summary_of_all_paths(scenario: &Scenario) -> Value {
    let mut first = summary(scenario);
    if scenario.path_count() > 1 {
        let each = scenario.each_path();
        let named = scenario.path_names().into_iter().zip(&each);
        let named = named.map(|(name, path)| {
            let mut figures = summary(path);
            figures["name"] = json!(name);
            for of_scenario in ["title", "source", "notes", "timeout_s"] {
                drop(
                    figures
                        .as_object_mut()
                        .map(|it| it.shift_remove(of_scenario)),
                );
            }
            figures
        });
        first["paths"] = named.collect();
    }
    first
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

/// The description of one direction. Values that do not change are left out.
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

/// The losses on the way: of the satellite, and of other segments with their names; `none` if there
/// are none.
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

/// The losses of a link: its model, and bit errors.
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
