//! `bentpipe-emu`: real programs behind an emulated satellite link.
//!
//! `shell` runs a command on one of the hosts of a scenario; `trial` runs a trial; `probe` says
//! whether that works here, and `bench` measures how exactly; `awake` keeps idle processors from
//! sleeping while trials run. People use the `bentpipe` command, which starts this one.

mod cli;
mod commands;
mod trial;

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write, stdin, stdout};
use std::os::fd::FromRawFd;
use std::process::ExitCode;

use bentpipe_emulator::{INSIDE, IdlePrevention, bench, exit_code, prepare_inside, run_inside};
use bentpipe_link::Scenario;
use bentpipe_units::Span;

use commands::{probe, shell};

use cli::{Command, Shell, Source};

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let is_inside = arguments.first().is_some_and(|word| word == INSIDE);
    if is_inside {
        arguments.remove(0);
    }
    let command = match cli::parse(&arguments) {
        Ok(command) => command,
        Err(error) => error.exit(),
    };
    let result = match command {
        Command::IdlePrevention => stay_awake(),
        Command::Shell(shell) if is_inside => run_shell(&shell),
        Command::Probe if is_inside => probe::run(),
        Command::Trial if is_inside => run_trial(),
        Command::Bench { seconds, json } if is_inside => run_bench(seconds, json),
        _ => run_inside(&arguments)
            .map(|status| exit_code(status).into())
            .map_err(Into::into),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run_shell(shell: &Shell) -> Result<ExitCode, Box<dyn Error>> {
    let scenario = read(&shell.scenario)?;
    prepare_inside()?;
    shell::run(shell, &scenario)
}

fn run_trial() -> Result<ExitCode, Box<dyn Error>> {
    prepare_inside()?;
    trial::from_standard_input()?;
    Ok(ExitCode::SUCCESS)
}

fn run_bench(seconds: u64, json: bool) -> Result<ExitCode, Box<dyn Error>> {
    prepare_inside()?;
    let measured = bench(Span::from_secs(seconds))?;
    let text = if json {
        serde_json::to_string_pretty(&measured)?
    } else {
        measured.to_string()
    };
    writeln!(stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

/// Until whoever started it closes its standard input, or ends.
fn stay_awake() -> Result<ExitCode, Box<dyn Error>> {
    let _awake = IdlePrevention::start()?;
    io::copy(&mut stdin(), &mut io::sink())?;
    Ok(ExitCode::SUCCESS)
}

fn read(source: &Source) -> Result<Scenario, Box<dyn Error>> {
    match source {
        Source::File(file) => Ok(Scenario::load(file, &[])?),
        Source::Descriptor(number) => {
            let mut text = String::new();
            owned(*number).read_to_string(&mut text)?;
            Ok(serde_json::from_str(&text)?)
        }
    }
}

/// A file that was opened for this process by the one that started it; closed at the end, so that
/// no other gets it.
#[expect(
    unsafe_code,
    reason = "the number is on the command line for this one use"
)]
fn owned(descriptor: i32) -> File {
    unsafe { File::from_raw_fd(descriptor) }
}
