//! Changes to a scenario from the command line.

use toml::{Table, Value};

use crate::direction::Direction;
use crate::error::ScenarioError;

/// A change: `forward.queue` and `1BDP`.
pub(crate) type Set = (String, String);

/// The key in full: one that begins with a direction means the satellite segment.
pub(crate) fn full_key(key: &str) -> String {
    let first = key.split('.').next().unwrap_or(key);
    let is_direction = Direction::BOTH
        .iter()
        .any(|direction| direction.name() == first);
    if is_direction {
        format!("satellite.{key}")
    } else {
        key.to_owned()
    }
}

/// Makes a change. A value that begins with a brace, a bracket or a quote is TOML, any other is a
/// text.
pub(crate) fn apply(table: &mut Table, (key, value): &Set) -> Result<(), ScenarioError> {
    let wrong = |message: String| ScenarioError::Set {
        key: key.clone(),
        value: value.clone(),
        message,
    };
    let full = full_key(key);
    let (tables, name) = full
        .rsplit_once('.')
        .map_or(("", full.as_str()), |parts| parts);
    if full.split('.').any(str::is_empty) {
        return Err(wrong(
            "not a key; write it like forward.queue=1BDP".to_owned(),
        ));
    }
    let parsed = read_value(value).map_err(wrong)?;
    let mut at = table;
    for part in tables.split('.').filter(|part| !part.is_empty()) {
        let inner = at.entry(part).or_insert_with(|| Value::Table(Table::new()));
        at = inner.as_table_mut().ok_or_else(|| {
            wrong(format!(
                "{part} is not a table in this scenario; set it as a whole"
            ))
        })?;
    }
    at.insert(name.to_owned(), parsed);
    Ok(())
}

fn read_value(text: &str) -> Result<Value, String> {
    if !text.starts_with(['{', '[', '"', '\'']) {
        return Ok(Value::String(text.to_owned()));
    }
    let table: Table = format!("value = {text}")
        .parse()
        .map_err(|error: toml::de::Error| format!("not a TOML value: {}", error.message()))?;
    table
        .get("value")
        .cloned()
        .ok_or_else(|| "not a TOML value".to_owned())
}
