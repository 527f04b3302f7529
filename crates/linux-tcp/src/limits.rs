//! The limits of the system, raised for thousands of connections at once.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Each connection has a socket and a file; 30,000 of them are all that one address has ports for.
const DESCRIPTORS: u64 = 65_536;

/// Raises the number of descriptors as far as this process may.
pub fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.unwrap_or(DESCRIPTORS);
    let more = |count: u64| Rlimit {
        current: Some(count),
        maximum: limit.maximum.map(|it| it.max(count)),
    };
    // More than is allowed is granted to a privileged process alone.
    let _ = setrlimit(Resource::Nofile, more(DESCRIPTORS.max(allowed)))
        .or_else(|_| setrlimit(Resource::Nofile, more(allowed)));
}
