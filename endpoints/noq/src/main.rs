//! noq as an endpoint program (`endpoints/CONTRACT.md`), and with `perf` as its first argument as a measuring instrument.

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
mod perf;
#[cfg(test)]
#[path = "../../../crates/endpoint/quinn-family/tests/reading.rs"]
mod reading;

use std::process::ExitCode;

use bentpipe_noq_options as options;
use noq_proto as proto;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|word| word == "perf").is_some() {
        return perf::main(arguments);
    }
    bentpipe_endpoint::run::<adapter::Adapter>()
}
