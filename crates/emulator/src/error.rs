//! The errors of the emulator.

use std::fs;
use std::io;

/// The reason why real time does not work here, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The kernel does not let this process make namespaces.
    #[error("namespaces cannot be made: {error}\nhint: {hint}")]
    NoNamespaces {
        /// The kernel's error.
        error: io::Error,
        /// A hint at the remedy.
        hint: &'static str,
    },
    /// A shell cannot be made inside another, as where there are no addresses left.
    #[error("a shell cannot be made inside this one: {0}")]
    NoRoom(&'static str),
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// The operation that failed.
        what: String,
        /// The kernel's error.
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

/// The switches by which user namespaces are kept from ordinary users: where each is, what it says
/// then, and how to turn it.
const SWITCHES: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "user namespaces are switched off: run as root, or `sysctl user.max_user_namespaces=15000`",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are for root alone: run as root, or `sysctl \
         kernel.unprivileged_userns_clone=1`",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor restricts user namespaces: run as root, or `sysctl \
         kernel.apparmor_restrict_unprivileged_userns=0`",
    ),
];

impl EmulatorError {
    /// With what this machine says about namespaces.
    pub(crate) fn no_namespaces(error: impl Into<io::Error>) -> Self {
        Self::NoNamespaces {
            error: error.into(),
            hint: hint(),
        }
    }
}

fn hint() -> &'static str {
    SWITCHES
        .iter()
        .find(|(file, off, _)| fs::read_to_string(file).is_ok_and(|text| text.trim() == *off))
        .map_or(
            "run as root; inside a container that takes CAP_SYS_ADMIN and CAP_NET_ADMIN, as \
             `docker run --privileged` gives",
            |(_, _, hint)| hint,
        )
}
