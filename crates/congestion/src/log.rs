//! A controller's reports, for logs and statistics.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use bentpipe_units::{Span, Time};

/// A value in a [`LogEvent`].
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A word.
    Text(&'static str),
    /// A count, or bytes.
    Integer(u64),
    /// Anything else; finite.
    Number(f64),
    /// Counts, or bytes.
    List(Vec<u64>),
}

impl Value {
    /// A span in milliseconds, as qlog has times.
    #[must_use]
    pub fn milliseconds(span: Span) -> Self {
        Self::Number(span.as_secs_f64() * 1e3)
    }
}

/// An event worth a line in a log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEvent {
    /// When.
    pub now: Time,
    /// Its name, such as `phase` or `search_bin`.
    pub name: &'static str,
    /// Names, with their units, and values.
    pub data: Vec<(&'static str, Value)>,
}

impl LogEvent {
    /// The value called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.data.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value)
    }
}

/// The log of a controller.
pub trait EventLog: Send + Debug {
    /// Takes an event.
    fn log(&mut self, event: &LogEvent);
}

/// An [`EventLog`] that outlives the connection.
pub type SharedEventLog = Arc<Mutex<dyn EventLog>>;
