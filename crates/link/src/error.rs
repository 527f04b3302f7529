//! The errors of reading a scenario.

/// The reason for which a scenario cannot be used. The message names the file, the key, the value
/// and what to write.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{file}: cannot read the scenario: {error}")]
    Read {
        /// The scenario file.
        file: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{file}: not TOML: {message}")]
    Syntax {
        /// The scenario file.
        file: String,
        /// Where and what.
        message: String,
    },
    /// A key or value is wrong.
    #[error("{file}: {key}: {message}")]
    Value {
        /// The scenario file, and the change to it that is to blame, if one is.
        file: String,
        /// The key with its tables, separated by dots.
        key: String,
        /// The value, what is wrong and what to write.
        message: String,
    },
    /// A change from the command line cannot be made.
    #[error("--set {key}={value}: {message}")]
    Set {
        /// The key as given.
        key: String,
        /// The value as given.
        value: String,
        /// The problem, and its correction.
        message: String,
    },
}
