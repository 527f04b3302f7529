//! The proxy as a program, for operators and in trials.

mod program;
mod testbed;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    testbed::run(&arguments).unwrap_or_else(|| program::main(arguments.into_iter()))
}
