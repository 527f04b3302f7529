//! `bentpipe pep`: the proxy on real sockets, for operators.
//!
//! The library knows neither sockets nor clocks nor files. Here are the settings, a worker for each
//! core, the log, metrics, and what signals do: SIGTERM and SIGINT drain, the second of them ends
//! at once, SIGHUP reads the settings again.

mod arguments;
mod http;
mod listening;
mod log;
mod metrics;
mod resolved;
mod service;
mod settings;
mod steering;
mod tls;
mod trial;
mod worker;

use std::io::Write as _;
use std::process::ExitCode;

use bentpipe_endpoint::EndpointError;

use arguments::Command;
use resolved::ResolvedSettings;
use settings::{Settings, SettingsError};
pub use trial::serve_trial;

/// The reason why the program ends early.
#[derive(Debug)]
enum Failure {
    /// It was not understood; nothing was started.
    SettingsError(SettingsError),
    /// The system refused something, or a worker failed.
    Failed(String),
}

impl From<SettingsError> for Failure {
    fn from(problem: SettingsError) -> Self {
        Self::SettingsError(problem)
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
        Err(Failure::SettingsError(problem)) => {
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
        Command::Check(arguments) => {
            let settings = Settings::load(arguments.file.as_deref(), &arguments.overrides)?;
            let plan = ResolvedSettings::new(settings)?;
            say(&plan.settings.to_toml());
        }
        Command::Run(arguments) => service::run(arguments)?,
    }
    Ok(())
}

/// Whoever does not read it any more misses nothing.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
