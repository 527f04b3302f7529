//! Changes to a scenario from the command line.

use toml::{Table, Value};

use crate::direction::Direction;
use crate::error::ScenarioError;

/// A change: `forward.queue` and `1BDP`.
pub(crate) type Set = (String, String);

/// The key in full: one that begins with a direction means the satellite segment, of the path that
/// stands before it as `paths.NAME`, or of the first.
pub(crate) fn full_key(key: &str) -> String {
    if let Some((name, rest)) = key
        .strip_prefix("paths.")
        .and_then(|rest| rest.split_once('.'))
    {
        return format!("paths.{name}.{}", of_path(rest));
    }
    of_path(key)
}

fn of_path(key: &str) -> String {
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
    if let Some(problem) = unknown_path(table, &full) {
        return Err(wrong(problem));
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

/// The problem of a key within one of several paths of which none has its name.
fn unknown_path(table: &Table, key: &str) -> Option<String> {
    let (name, _) = key.strip_prefix("paths.")?.split_once('.')?;
    let others = table.get("paths")?.as_table().filter(|it| !it.is_empty())?;
    if others.contains_key(name) {
        return None;
    }
    let first = table.get("path").and_then(Value::as_str);
    if first == Some(name) {
        return Some(format!(
            "{name} is the first path; leave out paths.{name} before its keys"
        ));
    }
    let names: Vec<&str> = others.keys().map(String::as_str).collect();
    Some(format!(
        "no path {name}; beside the first there are {}. A new one is set as a whole, as \
         paths.{name}={{satellite={{…}}}}",
        names.join(", ")
    ))
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
