//! Why a program ends early.

use std::fmt;
use std::process::ExitCode;

/// A mistake in a configuration: where, what, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// The file, with its line where that is known, or the flags.
    pub place: String,
    /// The key and its value, and what is wrong with it.
    pub what: String,
    /// A hint at the remedy.
    pub hint: String,
}

impl SettingsError {
    /// One of these.
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

/// The reason why a program ends early.
#[derive(Debug)]
pub enum Failure {
    /// The configuration is not valid, or cannot be used here; nothing was started.
    Settings(SettingsError),
    /// The system refused something, or a worker failed.
    Failed(String),
}

impl From<SettingsError> for Failure {
    fn from(problem: SettingsError) -> Self {
        Self::Settings(problem)
    }
}

/// Says why the program ends, if early, and what its exit code is: 0 done, 1 failed, 2 not
/// understood.
#[must_use]
pub fn exit(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Settings(problem)) => {
            eprintln!("error: {problem}");
            eprintln!("hint: {}", problem.hint);
            ExitCode::from(2)
        }
        Err(Failure::Failed(what)) => {
            eprintln!("error: {what}");
            ExitCode::FAILURE
        }
    }
}
