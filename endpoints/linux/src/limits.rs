//! The limits of the system, raised for thousands of connections at once, each with a thread.

use std::fs;
use std::path::Path;

use bentpipe_endpoint::EndpointError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::kernel::GUEST;

/// Each connection has a socket and a file; 30,000 of them are all that one address has ports for.
const DESCRIPTORS: u64 = 65_536;
/// By how much memory a guest has, its kernel allows some hundred threads.
const THREADS: (&str, &str) = ("/proc/sys/kernel/threads-max", "65536");

/// Raises them as far as this process may. Threads are limited for the machine as a whole, so that
/// is left alone but in a guest, whose machine is its own.
pub fn raise() -> Result<(), EndpointError> {
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.unwrap_or(DESCRIPTORS);
    let more = |count: u64| Rlimit {
        current: Some(count),
        maximum: limit.maximum.map(|it| it.max(count)),
    };
    // More than is allowed is granted to a privileged process alone.
    let _ = setrlimit(Resource::Nofile, more(DESCRIPTORS.max(allowed)))
        .or_else(|_| setrlimit(Resource::Nofile, more(allowed)));
    let (file, count) = THREADS;
    if Path::new(GUEST).exists() {
        fs::write(file, count).map_err(EndpointError::file(file))?;
    }
    Ok(())
}
