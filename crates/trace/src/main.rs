//! `bentpipe-trace`: what was on the wire, out of capture files, and what endpoints logged of it.
//!
//! `packets` prints the QUIC packets of captures, decrypted, as JSON. `analyze` makes a table of
//! them, and says what they achieved. `losses` fits models to what was lost. `qlog` says what the
//! logs of endpoints hold, and converts them for qvis.

mod analyze;
mod captures;
mod cli;
mod congestion_windows;
mod input;
mod losses;
mod packets;
mod progress;
mod qlog_command;
mod summary;
mod tables;

use std::process::ExitCode;

fn main() -> ExitCode {
    let command = match cli::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(error) => error.exit(),
    };
    let result = match command {
        cli::Command::Packets { files, key_log } => {
            packets::print(&files, key_log.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        cli::Command::Analyze(job) => analyze::run(&job),
        cli::Command::Losses { files, key_log } => losses::print(&files, key_log.as_deref()),
        cli::Command::Qlog(job) => qlog_command::run(&job),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
