//! `bentpipe tcp-pep`: the proxy for operators.

mod arguments;
mod rights;
mod service;
mod settings;

use std::io::Write as _;
use std::process::ExitCode;

use bentpipe_service::command_line::{Arguments, Command};
use bentpipe_service::settings::SettingsFile as _;
use bentpipe_service::{Failure, SettingsError, exit};

use settings::Settings;

/// Runs the program with these arguments.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let command = arguments::COMMAND_LINE.parse(arguments);
    exit(command.map_err(Failure::from).and_then(act))
}

fn act(command: Command) -> Result<(), Failure> {
    match command {
        Command::Help => say(arguments::HELP),
        Command::Version => say(&format!("{}\n", crate::trial::version())),
        Command::Check(arguments) => say(&read(&arguments)?.to_toml()),
        Command::Task(_, arguments) => remove_rules(&read(&arguments)?)?,
        Command::Run(arguments) => service::run(arguments)?,
    }
    Ok(())
}

fn read(arguments: &Arguments) -> Result<Settings, SettingsError> {
    Settings::load(arguments.file.as_deref(), &arguments.overrides)
}

/// Removes the rules of a proxy with these settings, which has been killed.
fn remove_rules(settings: &Settings) -> Result<(), Failure> {
    let Some(interception) = service::interception(settings) else {
        let hint =
            "say which with [intercept] of the configuration, or --clients, --servers and --port";
        let what = "--remove-rules: without interception there are none";
        return Err(SettingsError::new("the command line", what, hint).into());
    };
    interception.remove(Vec::new()).map_err(|error| {
        let hint = "`ip rule` and `ip -6 rule` list those that are there; it takes CAP_NET_ADMIN";
        let what = format!("--remove-rules: {error}");
        SettingsError::new("the system", what, hint).into()
    })
}

/// Prints a line; a reader that has gone away misses nothing.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
