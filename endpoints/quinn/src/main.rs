//! quinn as an endpoint program (`endpoints/CONTRACT.md`).

mod adapter;
mod dialect;

use std::process::ExitCode;

use quinn_proto as proto;

fn main() -> ExitCode {
    bentpipe_endpoint::run::<adapter::Adapter>()
}
