//! Mistakes in a configuration.

use std::fmt;

/// A mistake in a configuration: where, what, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// The file, with its line where that is known, or the flags.
    pub place: String,
    /// The key and its value, and what is wrong with it.
    pub what: String,
    pub hint: String,
}

impl SettingsError {
    pub fn new(place: impl Into<String>, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
            hint: hint.into(),
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.what)
    }
}
