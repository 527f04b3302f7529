//! `bentpipe-trace`: what was on the wire, out of capture files, and what endpoints logged of it.
//!
//! `packets` prints the QUIC packets of captures, decrypted, as JSON. `analyze` makes a table of them, and says what they
//! achieved. `qlog` says what the logs of endpoints hold, and converts them for qvis.

mod analyze;
mod cli;
mod congestion_windows;
mod input;
mod packets;
mod qlog_command;
mod summary;
mod tables;

use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match cli::parse(lexopt::Parser::from_env()) {
        Ok(cli::Command::Help) => cli::print_help().map(|()| ExitCode::SUCCESS),
        Ok(cli::Command::Packets { files, key_log }) => {
            packets::print(&files, key_log.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Ok(cli::Command::Analyze(job)) => analyze::run(&job),
        Ok(cli::Command::Qlog(job)) => qlog_command::run(&job).map(|()| ExitCode::SUCCESS),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
