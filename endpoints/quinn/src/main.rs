//! quinn as an endpoint program (`endpoints/CONTRACT.md`).

/// noq is a fork of quinn; one adapter serves both.
#[path = "../../../crates/endpoint/quinn-family/adapter.rs"]
mod adapter;
#[cfg(test)]
#[path = "../../../crates/endpoint/quinn-family/tests/adversity.rs"]
mod adversity;
#[path = "../../../crates/endpoint/quinn-family/client.rs"]
mod client;
mod dialect;
#[path = "../../../crates/endpoint/quinn-family/inbox.rs"]
mod inbox;
#[path = "../../../crates/endpoint/quinn-family/options.rs"]
mod options;
#[cfg(test)]
#[path = "../../../crates/endpoint/quinn-family/tests/reading.rs"]
mod reading;

use std::process::ExitCode;

use quinn_proto as proto;

fn main() -> ExitCode {
    bentpipe_endpoint::run::<adapter::Adapter>()
}
