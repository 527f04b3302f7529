//! `bentpipe-sim`: real QUIC stacks against each other in virtual time.
//!
//! `trial` runs one trial from a job (JSON on standard input) and prints its result (JSON on
//! standard output); `shell` has two commands live behind a link, which its job names; `scenario`
//! prints a scenario as it is understood, `courses` what changes with time in a trial of one;
//! `replay` drives one endpoint program alone through a conversation that a failed trial left
//! behind. People use the `bentpipe` command, which starts this one.

mod child;
mod cli;
mod coordinator;
mod costs;
mod courses;
mod drawing;
mod flow;
mod inbox;
mod links;
mod node;
mod packet;
mod processor;
mod programs;
mod replay;
mod scenario;
mod shared_memory;
mod shell;
mod trial;

use std::process::ExitCode;

fn main() -> ExitCode {
    bentpipe_endpoint::keep_freed_memory();
    let command = match cli::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(error) => error.exit(),
    };
    let result = match command {
        cli::Command::Trial { costs } => trial::from_standard_input(costs),
        cli::Command::Shell => return shell::from_standard_input(),
        cli::Command::Scenario { file, sets } => scenario::print(&file, &sets),
        cli::Command::Courses => courses::from_standard_input(),
        cli::Command::Replay { messages, command } => replay::replay(&messages, &command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
