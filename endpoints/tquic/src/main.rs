//! tquic as an endpoint program (`endpoints/CONTRACT.md`).

mod adapter;
mod boringssl;
mod config;
mod connection;
mod handler;
mod qlog;

use std::process::ExitCode;

fn main() -> ExitCode {
    bentpipe_endpoint::run::<adapter::Adapter>()
}
