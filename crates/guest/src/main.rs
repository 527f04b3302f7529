//! The program behind `carries = "ip"`: it has a program that knows sockets and a clock live in
//! virtual time, on a kernel of its own (`endpoints/contract/guests.md`).
//!
//! The same program is both ends of that: outside it answers the coordinator and starts the kernel,
//! inside it is the kernel's first process and starts the program.
//!
//! With `--folder`, the program is any command: for `bentpipe shell --testbed sim`.

mod cli;
mod greeting;
mod inside;
mod machine;
mod outside;
mod printed;
mod surroundings;
mod task;

use std::process::{self, ExitCode};

fn main() -> ExitCode {
    if process::id() == 1 {
        return inside::first_process();
    }
    let wanted = match cli::parse(std::env::args_os()) {
        Ok(wanted) => wanted,
        Err(error) => error.exit(),
    };
    match outside::run(&wanted) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bentpipe-guest: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
