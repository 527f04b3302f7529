//! What can go wrong.

use std::io;

/// Why real time does not work here, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The kernel does not let this process make namespaces.
    #[error("namespaces cannot be made: {error}\nhint: {hint}")]
    NoNamespaces {
        /// What the kernel said.
        error: io::Error,
        /// What to do about it.
        hint: &'static str,
    },
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// What was being done.
        what: String,
        /// What the kernel said.
        error: io::Error,
    },
}

/// Says what was being done when a system call failed.
pub(crate) trait Doing<T> {
    /// `what`, as in "making the device satellite".
    fn doing(self, what: impl Into<String>) -> Result<T, EmulatorError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Into<String>) -> Result<T, EmulatorError> {
        self.map_err(|error| EmulatorError::System {
            what: what.into(),
            error: error.into(),
        })
    }
}
