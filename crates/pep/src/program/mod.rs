//! `bentpipe pep`: the proxy on real sockets, for operators.
//!
//! The library knows neither sockets nor clocks nor files. Here are the settings, a worker for each core, the log, metrics, and what signals do:
//! SIGTERM and SIGINT drain, the second of them ends at once, SIGHUP reads the settings again.

mod alone;
mod arguments;
mod http;
mod log;
mod metrics;
mod plan;
mod service;
mod settings;
mod sockets;
mod steering;
mod tls;
mod worker;

use std::io::Write as _;
use std::process::ExitCode;

use bentpipe_endpoint::EndpointError;

pub use alone::alone;
use arguments::Command;
use plan::Plan;
use settings::{Problem, Settings};

/// Why the program ends early.
#[derive(Debug)]
enum Failure {
    /// It was not understood; nothing was started.
    Problem(Problem),
    /// The system refused something, or a worker failed.
    Failed(String),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<EndpointError> for Failure {
    fn from(error: EndpointError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Runs the program with these arguments.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let result = arguments::parse(arguments)
        .map_err(Failure::from)
        .and_then(act);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Problem(problem)) => {
            eprintln!("error: {problem}");
            eprintln!("hint: {}", problem.hint);
            ExitCode::from(2)
        }
        Err(Failure::Failed(what)) => {
            eprintln!("error: {what}");
            ExitCode::FAILURE
        }
    }
}

fn act(command: Command) -> Result<(), Failure> {
    match command {
        Command::Help => say(arguments::HELP),
        Command::Version => say(&format!("{}\n", crate::VERSION)),
        Command::Check(wanted) => {
            let settings = Settings::load(wanted.file.as_deref(), &wanted.changes)?;
            let plan = Plan::new(settings)?;
            say(&plan.settings.to_toml());
        }
        Command::Run(wanted) => service::run(wanted)?,
    }
    Ok(())
}

/// Whoever does not read it any more misses nothing.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
