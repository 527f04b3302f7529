//! `bentpipe-perf`: what QUIC gets through a path, as iperf3 does for TCP.
//!
//! The same library, congestion control and options as noq's endpoint of trials
//! (`endpoints/noq/stack.toml`), between two programs in real time, without files. `protocol` says
//! what they tell each other, `session` how a test goes; only `engine` has a socket and a clock.

mod arguments;
mod client;
mod control_stream;
mod document;
mod engine;
mod interval_timer;
mod protocol;
mod receiver;
mod sender;
mod server;
mod session;
mod table;
mod tls;
mod transport;

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use bentpipe_endpoint::{EndpointError, LogFile, LogFolder};
use rustix::time::{ClockId, clock_gettime};

use self::arguments::{Command, OutputOptions};

const INTERRUPTED: u8 = 130;

/// Why the program ends early.
#[derive(Debug)]
struct Failure {
    what: String,
    hint: String,
    code: u8,
}

impl Failure {
    fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            hint: hint.into(),
            code: 1,
        }
    }

    /// Not understood.
    fn usage(what: impl Into<String>, hint: impl Into<String>) -> Self {
        let failure = Self::new(what, hint);
        Self { code: 2, ..failure }
    }
}

impl From<EndpointError> for Failure {
    fn from(error: EndpointError) -> Self {
        match error {
            EndpointError::Unsupported(what) => {
                Self::usage(what, "bentpipe perf --help lists all options")
            }
            other => Self::new(other.to_string(), ""),
        }
    }
}

fn main() -> ExitCode {
    bentpipe_endpoint::keep_freed_memory();
    let words = std::env::args_os().skip(1).map(OsString::into_string);
    let words: Vec<String> = match words.collect() {
        Ok(words) => words,
        Err(odd) => {
            let odd = odd.to_string_lossy();
            eprintln!("error: the command line: {odd:?} is not UTF-8");
            return ExitCode::from(2);
        }
    };
    let command = arguments::parse(words.into_iter());
    let result = match command {
        Ok(Command::Help) => {
            say(arguments::HELP.trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Ok(Command::Server(arguments)) => server::run(&arguments).map(|()| ExitCode::SUCCESS),
        Ok(Command::Client(arguments)) => client::run(arguments),
        Err(problem) => Err(Failure::usage(problem.what, problem.hint)),
    };
    result.unwrap_or_else(|failure| {
        eprintln!("error: {}", failure.what);
        if !failure.hint.is_empty() {
            eprintln!("hint: {}", failure.hint);
        }
        ExitCode::from(failure.code)
    })
}

/// Prints a line. Whoever does not read it any more misses nothing.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// For rates and shares, of which nobody needs 53 bits.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn real(number: u64) -> f64 {
    number as f64
}

/// CPU time of this process.
#[expect(
    clippy::disallowed_methods,
    reason = "it is a measure of the program, not a time that protocol logic is told"
)]
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// The files that both sides may write.
fn logs(
    output: &OutputOptions,
    stem: &'static str,
) -> Result<(Option<LogFile>, Option<LogFolder>), EndpointError> {
    let keylog = output.keylog.as_deref().map(LogFile::append).transpose()?;
    let folder = |path: &Path| {
        fs::create_dir_all(path).map_err(EndpointError::file(path))?;
        Ok::<_, EndpointError>(LogFolder::new(path.to_owned(), stem))
    };
    let qlog = output.qlog.as_deref().map(folder).transpose()?;
    Ok((keylog, qlog))
}
