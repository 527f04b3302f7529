//! `bentpipe-trace`: what was on the wire, out of capture files, and what endpoints logged of it.
//!
//! `packets` prints the QUIC packets of captures, decrypted, as JSON. `qlog` says what the logs of endpoints hold, and
//! converts them for qvis.

mod cli;
mod packets;
mod qlog_command;
mod summary;

use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match cli::parse(lexopt::Parser::from_env()) {
        Ok(cli::Command::Help) => cli::print_help(),
        Ok(cli::Command::Packets { files, key_log }) => packets::print(&files, key_log.as_deref()),
        Ok(cli::Command::Qlog(job)) => qlog_command::run(&job),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
