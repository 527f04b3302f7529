//! `bentpipe pep`: the proxy on real sockets, for operators.
//!
//! The library knows neither sockets nor clocks nor files. Here are the settings, a worker for each
//! core, the log, metrics, and what signals do: SIGTERM and SIGINT drain, the second of them ends
//! at once, SIGHUP reads the settings again.

mod arguments;
mod metrics;
mod resolved;
mod service;
mod settings;
mod tls;
mod trial;
mod worker;

use std::io::Write as _;
use std::process::ExitCode;

use bentpipe_endpoint::EndpointError;
use bentpipe_service::command_line::Command;
use bentpipe_service::settings::SettingsFile as _;
use bentpipe_service::{Failure, exit};

use resolved::ResolvedSettings;
use settings::Settings;
pub use trial::serve_trial;

/// The crate whose events are logged.
const LOGGED: &str = env!("CARGO_CRATE_NAME");

/// Runs the program with these arguments.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let command = arguments::COMMAND_LINE.parse(arguments);
    exit(command.map_err(Failure::from).and_then(act))
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
        Command::Task(task, _) => unreachable!("there is no task {task}"),
        Command::Run(arguments) => service::run(arguments)?,
    }
    Ok(())
}

/// Prints a line; a reader that has gone away misses nothing.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn failed(error: &EndpointError) -> Failure {
    Failure::Failed(error.to_string())
}
