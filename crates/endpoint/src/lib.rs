//! What a Rust QUIC stack needs to become an endpoint program (`endpoints/CONTRACT.md`).
//!
//! A program implements [`Stack`] for its QUIC library and calls [`run`]. The rest is here: the contract's frames, the
//! requests and replies of `hq-interop`, TLS, logs, and the two drivers, one for virtual time and one for UDP sockets.
//! Only the drivers know what time it is; everything else is told.

pub mod contract;
mod memory;

pub use self::memory::keep_freed_memory;

#[cfg(feature = "program")]
mod clock;
#[cfg(feature = "program")]
pub mod driver;
#[cfg(feature = "program")]
mod entropy;
#[cfg(feature = "program")]
mod error;
#[cfg(feature = "program")]
pub mod hq;
#[cfg(feature = "interposed-clock")]
mod interposed_clock;
#[cfg(feature = "program")]
mod log_file;
#[cfg(feature = "program")]
mod options;
#[cfg(feature = "program")]
mod program;
#[cfg(feature = "program")]
mod reassembly;
#[cfg(feature = "program")]
mod setup;
#[cfg(feature = "program")]
mod stack;
#[cfg(feature = "program")]
mod test_case;
#[cfg(feature = "program")]
mod tickets;
#[cfg(feature = "program")]
mod tls;

#[cfg(feature = "program")]
pub use self::{
    clock::Clock,
    entropy::seed_thread as seed_entropy_of_thread,
    error::EndpointError,
    log_file::{LogFile, LogFolder},
    options::Options,
    program::{run, seed_entropy},
    reassembly::{Reassembly, ReassemblyError},
    setup::{Role, Setup, Surroundings},
    stack::{
        Closing, ConnectionKey, Event, Read, Received, Resume, Stack, StreamEnd, StreamKey,
        Transmit,
    },
    test_case::TestCase,
    tickets::Tickets,
    tls::Tls,
};
