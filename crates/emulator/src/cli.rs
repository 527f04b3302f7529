//! The command line.

use std::error::Error;
use std::io::{Write, stdout};

use lexopt::prelude::*;

const HELP: &str = "\
Real programs behind an emulated satellite link, in real time

Usage:
  bentpipe-emu COMMAND
";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Help,
}

/// Reads the command line.
pub fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    match parser.next()? {
        None | Some(Short('h') | Long("help")) => Ok(Command::Help),
        Some(other) => Err(other.unexpected()),
    }
}

/// Prints what the program can do.
pub fn print_help() -> Result<(), Box<dyn Error>> {
    stdout().write_all(HELP.as_bytes())?;
    Ok(())
}
