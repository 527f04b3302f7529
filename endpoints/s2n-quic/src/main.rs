//! s2n-quic as an endpoint program (`endpoints/CONTRACT.md`).

mod adapter;
mod connection;
mod machine;
mod qlog;
mod queues;
mod settings;
mod wakes;

use std::process::ExitCode;

fn main() -> ExitCode {
    bentpipe_endpoint::run::<adapter::Adapter>()
}
