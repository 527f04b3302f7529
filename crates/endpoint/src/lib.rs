//! Everything that a Rust QUIC stack needs to become an endpoint program (`endpoints/CONTRACT.md`).
//!
//! A program implements [`Stack`] for its QUIC library and calls [`run`]. The rest is here: the
//! contract's messages, the requests and replies of `hq-interop`, TLS, logs, and the two drivers,
//! one for virtual time and one for UDP sockets. Only the drivers know the time; everything else
//! takes it as an argument.

pub mod contract;
mod memory;

pub use self::memory::keep_freed_memory;

mod any_certificate;
mod application;
mod clock;
pub mod driver;
mod entropy;
mod error;
mod files;
mod frames;
mod h3;
pub mod hq;
#[cfg(feature = "interposed-clock")]
mod interposed_clock;
mod log_file;
mod migration;
mod options;
mod outbox;
mod page;
mod program;
mod reassembly;
mod setup;
mod stack;
mod test_case;
mod tickets;
mod tls;
mod words;

pub use self::{
    any_certificate::AnyCertificate,
    application::Application,
    clock::Clock,
    entropy::seed_thread as seed_entropy_of_thread,
    error::EndpointError,
    files::ServedFolder,
    frames::{Carrier, FrameStream},
    log_file::{LogFile, LogFolder},
    migration::Migration,
    options::{FLOW_CONTROL_WINDOWS, Options},
    outbox::Outbox,
    page::{HTTP1_CONNECTIONS, LiveStream, PageLoad, Resource, browser_headers},
    program::{run, seed_entropy},
    reassembly::{Reassembly, ReassemblyError},
    setup::{PathEnds, Role, Setup, Surroundings},
    stack::{Closing, ConnectionKey, Event, Read, Received, Stack, StreamEnd, StreamKey, Transmit},
    test_case::TestCase,
    tickets::{Resume, Tickets},
    tls::Tls,
};
