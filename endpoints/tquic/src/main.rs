//! tquic as an endpoint program (`endpoints/CONTRACT.md`).

mod adapter;
mod config;
mod connection;
mod handler;
mod qlog;
mod signatures;

use std::process::ExitCode;

fn main() -> ExitCode {
    bentpipe_endpoint::run::<adapter::Adapter>()
}
