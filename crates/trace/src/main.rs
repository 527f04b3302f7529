//! `bentpipe-trace`: what was on the wire, out of capture files.
//!
//! `packets` prints the QUIC packets of captures, decrypted, as JSON.

mod cli;
mod packets;
mod summary;

use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match cli::parse(lexopt::Parser::from_env()) {
        Ok(cli::Command::Help) => cli::print_help(),
        Ok(cli::Command::Packets { files, key_log }) => packets::print(&files, key_log.as_deref()),
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
