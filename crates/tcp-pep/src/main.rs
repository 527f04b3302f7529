//! A proxy that splits TCP connections, as operators have at both ends of a satellite link (RFC 3135).
//!
//! It is transparent: client and server see each other's addresses. It answers the client's
//! handshake itself, at once, opens a connection of its own to where the client wanted to go, and
//! carries bytes between the two. What it has acknowledged to one side waits, bounded, for the
//! other.

mod cli;
mod direction;
mod interception;
mod options;
mod pair;
mod relay;
mod trial;

use std::process::ExitCode;

use crate::cli::Wanted;

fn main() -> ExitCode {
    let wanted = match cli::parse(std::env::args_os()) {
        Ok(wanted) => wanted,
        Err(error) => error.exit(),
    };
    let result = match wanted {
        Wanted::Trial => trial::run(),
        Wanted::Version => {
            println!("{}", trial::version());
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bentpipe-tcp-pep: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
