//! `bentpipe-emu`: real programs behind an emulated satellite link.
//!
//! People use the `bentpipe` command, which starts this one.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match cli::parse(lexopt::Parser::from_env()) {
        Ok(cli::Command::Help) => cli::print_help(),
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
