//! Prints a scenario as it is understood: resolved, and summed up for people and programs that parse no units.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;

use bentpipe_link::{Direction, Scenario};
use serde_json::{Value, json};

use crate::facts::path_facts;

/// Prints the scenario in `file` with `sets` applied, as one JSON object.
pub fn print(file: &Path, sets: &[(String, String)]) -> Result<(), Box<dyn Error>> {
    let scenario = Scenario::load(file, sets)?;
    writeln!(
        stdout(),
        "{}",
        json!({ "summary": summary(&scenario), "scenario": scenario })
    )?;
    Ok(())
}

/// The figures of a scenario; queue and loss are those of the satellite segment.
fn summary(scenario: &Scenario) -> Value {
    let facts = path_facts(scenario);
    let part = |direction, key: &str| {
        let link =
            serde_json::to_value(scenario.satellite.direction(direction)).unwrap_or_default();
        text(&link[key])
    };
    json!({
        "name": scenario.name,
        "title": scenario.title,
        "source": scenario.source,
        "notes": scenario.notes,
        "rtt_ms": facts.rtt_ms,
        "timeout_s": scenario.timeout.as_secs_f64(),
        "forward_rate_bps": facts.forward_rate_bps,
        "return_rate_bps": facts.return_rate_bps,
        "forward_queue_bytes": facts.forward_queue_bytes,
        "return_queue_bytes": facts.return_queue_bytes,
        "mtu_bytes": facts.mtu_bytes,
        "forward_queue": part(Direction::Forward, "queue"),
        "return_queue": part(Direction::Return, "queue"),
        "forward_loss": part(Direction::Forward, "loss"),
        "return_loss": part(Direction::Return, "loss"),
    })
}

/// A field as people read it: a text as it is, a table as `key value, key value`.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(table) => {
            let fields: Vec<String> = table
                .iter()
                .map(|(key, value)| format!("{} {}", key.replace('_', " "), text(value)))
                .collect();
            fields.join(", ")
        }
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}
