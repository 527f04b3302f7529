//! A proxy that splits TCP connections, as operators have at both ends of a satellite link (RFC
//! 3135).
//!
//! Where it is transparent, client and server see each other's addresses. It answers the client's
//! handshake itself, opens a separate connection to where the client wanted to go, and carries
//! bytes between the two. What it has acknowledged to one side waits, bounded, for the other.
//!
//! [`relay`] carries, and knows neither trials nor operators; [`trial`] and [`program`] start it
//! for these.

mod buffers;
mod config;
mod direction;
mod event_log;
mod interception;
mod options;
mod pair;
mod preamble;
mod program;
mod relay;
mod sockets;
mod statistics;
mod syn_gate;
mod trial;
mod watched_socket;

use std::env;
use std::process::ExitCode;

/// The crate whose events are logged.
const LOGGED: &str = env!("CARGO_CRATE_NAME");

fn main() -> ExitCode {
    let arguments = env::args_os().skip(1).map(std::ffi::OsString::into_string);
    let arguments: Vec<String> = match arguments.collect() {
        Ok(arguments) => arguments,
        Err(odd) => {
            let odd = odd.to_string_lossy();
            eprintln!("error: the command line: {odd:?} is not UTF-8");
            return ExitCode::from(2);
        }
    };
    match arguments.first().map(String::as_str) {
        // The call that the contract asks of any program, and then the one of a trial.
        Some("trial") if arguments.iter().any(|it| it == "--version") => {
            println!("{}", trial::version());
            ExitCode::SUCCESS
        }
        Some("trial") => match trial::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("bentpipe-tcp-pep: {error}");
                ExitCode::from(error.exit_code())
            }
        },
        _ => program::main(arguments.into_iter()),
    }
}
