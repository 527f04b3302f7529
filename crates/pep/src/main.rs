//! The proxy as a program.

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::main(std::env::args().skip(1))
}
