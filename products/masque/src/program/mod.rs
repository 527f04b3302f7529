//! `bentpipe masque`: the proxy and the client on real sockets, for operators.
//!
//! The library knows neither sockets nor clocks nor files. Here are the settings, the threads, the
//! log, metrics, and what signals do.

mod allow;
mod arguments;
mod batch;
mod client;
mod device;
mod proxy;
mod routes;
mod tunnel;

use std::io::Write as _;
use std::process::ExitCode;

use bentpipe_service::command_line::{Arguments, Command, CommandLine};
use bentpipe_service::{Failure, SettingsError, exit};

/// The crate whose events are logged.
const LOGGED: &str = env!("CARGO_CRATE_NAME");

/// One of the two programs.
struct Program {
    command_line: &'static CommandLine,
    check: fn(&Arguments) -> Result<String, SettingsError>,
    run: fn(Arguments) -> Result<(), Failure>,
}

/// Runs a proxy with these arguments.
pub fn proxy(arguments: impl Iterator<Item = String>) -> ExitCode {
    let program = Program {
        command_line: &arguments::PROXY,
        check: proxy::check,
        run: proxy::run,
    };
    exit(program.act(arguments))
}

/// Runs a client with these arguments.
pub fn client(arguments: impl Iterator<Item = String>) -> ExitCode {
    let program = Program {
        command_line: &arguments::CLIENT,
        check: client::check,
        run: client::run,
    };
    exit(program.act(arguments))
}

impl Program {
    fn act(&self, arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
        match self.command_line.parse(arguments)? {
            Command::Help => say(self.command_line.help),
            Command::Version => say(&format!("{}\n", crate::VERSION)),
            Command::Check(arguments) => say(&(self.check)(&arguments)?),
            Command::Task(task, _) => unreachable!("there is no task {task}"),
            Command::Run(arguments) => (self.run)(arguments)?,
        }
        Ok(())
    }
}

/// Prints a text; a reader that has gone away misses nothing.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
