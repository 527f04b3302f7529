//! Reads tables strictly: every key must be known, and every error says where it is.

use std::fmt::Display;
use std::str::FromStr;

use toml::{Table, Value};

/// The problem at a key.
#[derive(Debug)]
pub(crate) struct Problem {
    pub key: String,
    pub message: String,
}

/// A table that is being read.
pub(crate) struct Fields {
    /// The table's own key, empty for the outermost.
    key: String,
    table: Table,
    known: Vec<&'static str>,
}

/// A value and its key.
pub(crate) struct Entry {
    key: String,
    value: Value,
}

impl Fields {
    pub fn new(table: Table) -> Self {
        Self {
            key: String::new(),
            table,
            known: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> String {
        if self.key.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.key)
        }
    }

    /// Takes a value out of the table.
    pub fn take(&mut self, name: &'static str) -> Option<Entry> {
        self.known.push(name);
        self.table.remove(name).map(|value| Entry {
            key: self.path(name),
            value,
        })
    }

    /// Takes a value that must be there; `examples` says what to write if it is not.
    pub fn required(&mut self, name: &'static str, examples: &str) -> Result<Entry, Problem> {
        let missing = self.missing(name, examples);
        self.take(name).ok_or(missing)
    }

    /// The problem that a required value is missing.
    pub fn missing(&self, name: &str, examples: &str) -> Problem {
        Problem {
            key: self.path(name),
            message: format!("missing; write {name} = {examples}"),
        }
    }

    /// Whether there is such a value.
    pub fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Takes and parses a value that may be left out.
    pub fn optional<T: FromStr<Err: Display>>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, Problem> {
        self.take(name).map(|entry| entry.parse()).transpose()
    }

    /// Ends the reading of this table: what is left in it is unknown.
    pub fn finish(self) -> Result<(), Problem> {
        let Some((name, value)) = self.table.iter().next() else {
            return Ok(());
        };
        let known = self.known.join(", ");
        let hint = match nearest(name, &self.known) {
            Some(near) => format!("did you mean \"{near}\"? Known here: {known}"),
            None => format!("known here: {known}"),
        };
        let message = format!("{}: unknown key; {hint}", show(value));
        Err(Problem {
            key: self.path(name),
            message,
        })
    }
}

impl Entry {
    pub fn value(&self) -> &Value {
        &self.value
    }

    pub fn is_table(&self) -> bool {
        self.value.is_table()
    }

    pub fn is_text(&self, text: &str) -> bool {
        self.value.as_str() == Some(text)
    }

    /// An error at this entry: its key, its value, and what is wrong with it.
    pub fn problem(&self, message: &str) -> Problem {
        Problem {
            key: self.key.clone(),
            message: format!("{}: {message}", show(&self.value)),
        }
    }

    /// The table to read further.
    pub fn table(self) -> Result<Fields, Problem> {
        match self.value {
            Value::Table(table) => Ok(Fields {
                key: self.key,
                table,
                known: Vec::new(),
            }),
            _ => Err(self.problem("a table is needed here")),
        }
    }

    /// The entries of a table whose names are chosen by its author.
    pub fn entries(self) -> Result<Vec<(String, Self)>, Problem> {
        let Value::Table(table) = self.value else {
            return Err(self.problem("a table is needed here"));
        };
        let entry = |(name, value)| {
            let key = format!("{}.{name}", self.key);
            (name, Self { key, value })
        };
        Ok(table.into_iter().map(entry).collect())
    }

    /// The values of an array, each with its place in it, from 0 on, in its key; None if it is no
    /// array.
    pub fn items(self) -> Option<Vec<Self>> {
        let Value::Array(values) = self.value else {
            return None;
        };
        let item = |(index, value)| Self {
            key: format!("{}.{index}", self.key),
            value,
        };
        Some(values.into_iter().enumerate().map(item).collect())
    }

    /// The text itself.
    pub fn text(&self) -> Result<String, Problem> {
        match &self.value {
            Value::String(text) => Ok(text.clone()),
            _ => Err(self.problem("a text is needed here; put it in quotes")),
        }
    }

    /// Parses a text; a number, too, so that the error says which unit it needs.
    pub fn parse<T: FromStr<Err: Display>>(&self) -> Result<T, Problem> {
        let text = match &self.value {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => return Err(self.problem("a value with a unit is needed here; put it in quotes")),
        };
        text.parse().map_err(|error: T::Err| Problem {
            key: self.key.clone(),
            message: error.to_string(),
        })
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The known name that differs least, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let close = known
        .iter()
        .map(|candidate| (strsim::levenshtein(name, candidate), *candidate));
    close
        .min()
        .filter(|(edits, _)| *edits <= 1 + name.len() / 4)
        .map(|(_, candidate)| candidate)
}
