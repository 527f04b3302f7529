//! The errors of an endpoint program.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;

use crate::contract::ContractError;

/// The reason for which an endpoint program ends early.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The role, test case, option or option value is not supported: exit code 127.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// A file or folder could not be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A pipe or socket failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The coordinator said something that is not in the contract.
    #[error("the coordinator broke the contract: {0}")]
    Contract(#[from] ContractError),
    /// The coordinator said something at the wrong time.
    #[error("the coordinator broke the contract: {0}")]
    Conversation(String),
    /// A JSON message was not what it should be.
    #[error("the coordinator broke the contract: {0}")]
    Json(#[from] serde_json::Error),
    /// An environment variable or field has a value that makes no sense.
    #[error("{field} = {value:?}: {problem}")]
    Field {
        /// The variable or field.
        field: &'static str,
        /// Its value.
        value: String,
        /// The problem, and its correction.
        problem: String,
    },
    /// TLS could not be set up.
    #[error("TLS: {0}")]
    Tls(String),
    /// The transfer failed.
    #[error("{0}")]
    Failed(String),
}

impl EndpointError {
    /// The error of an operation with the file `path`, for `map_err`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// The error of an operation on a pipe or socket, for `map_err`.
    pub fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }

    /// A library's error in its TLS, for `map_err`.
    pub fn tls(error: impl Display) -> Self {
        Self::Tls(error.to_string())
    }

    /// A library's error in a transfer, for `map_err`.
    pub fn failed(error: impl Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// The error of an option whose value is not supported; `problem` says what to write, or why.
    #[must_use]
    pub fn option(name: &str, value: &str, problem: &str) -> Self {
        Self::Unsupported(format!("option {name} = {value:?}: {problem}"))
    }

    /// The program's exit code (`endpoints/CONTRACT.md`).
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Self::Unsupported(_)) {
            127
        } else {
            1
        }
    }
}
