//! The program itself: started, waited for, ended.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitCode, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use sha2::{Digest, Sha256};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{InteropError, PORT};

const TICK: Duration = Duration::from_millis(5);
/// The time between asking a server to end and killing it.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The name of the program and what it is made of: the runner has no word for versions. Of `python
/// endpoint.py` the program is the script.
pub fn version(command: &[OsString]) -> String {
    let files = command.iter().map(Path::new).filter(|it| it.is_file());
    let contents: Vec<(&Path, Vec<u8>)> = files
        .filter_map(|file| Some((file, fs::read(file).ok()?)))
        .collect();
    let Some((program, _)) = contents.last() else {
        return "of no file".to_owned();
    };
    let mut digest = Sha256::new();
    for (_, content) in &contents {
        digest.update(content);
    }
    let mut hex = String::new();
    for byte in digest.finalize().iter().take(6) {
        let _ = write!(hex, "{byte:02x}"); // to a string, which takes all
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    format!("{name} of sha256 {hex}")
}

/// Runs a client until its requests are done; its exit code.
pub fn fetch(command: &[OsString], requests: &str) -> Result<ExitCode, InteropError> {
    let mut program = command_of(command)?;
    let status = program.env("REQUESTS", requests).status();
    Ok(code_of(
        status.map_err(InteropError::io("starting the program"))?,
    ))
}

/// Runs a server until it is asked to end, and reports when it listens.
pub fn serve(command: &[OsString]) -> Result<ExitCode, InteropError> {
    let signals = Signals::new([SIGTERM, SIGINT, SIGCHLD]);
    let mut signals = signals.map_err(InteropError::io("taking signals"))?;
    let mut program = command_of(command)?;
    // A group of its own: a script may have started the server.
    let started = program
        .process_group(0)
        .stdout(Stdio::from(io::stderr()))
        .stderr(Stdio::piped())
        .spawn();
    let mut program = started.map_err(InteropError::io("starting the program"))?;
    let last_line = passed_on(program.stderr.take());
    let mut is_ready = false;
    loop {
        let told = if is_ready {
            // Nothing is looked at meanwhile: in virtual time that would be an event each time.
            is_told(signals.wait())
        } else {
            is_told(signals.pending())
        };
        if told {
            end(&mut program);
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(status) = program.try_wait().map_err(InteropError::io("waiting"))? {
            end(&mut program);
            return if is_ready {
                Ok(code_of(status))
            } else {
                before_it_listened(status, last_line)
            };
        }
        if !is_ready && listens() {
            is_ready = true;
            println!("ready");
            io::stdout()
                .flush()
                .map_err(InteropError::io("standard output"))?;
        } else if !is_ready {
            pause();
        }
    }
}

/// Whether one of the signals says that the server is to end.
fn is_told(mut signals: impl Iterator<Item = i32>) -> bool {
    signals.any(|signal| signal != SIGCHLD)
}

/// A test case that a server does not know ends it with 127, as the contract has it.
fn before_it_listened(
    status: ExitStatus,
    last_line: JoinHandle<String>,
) -> Result<ExitCode, InteropError> {
    match status.code() {
        Some(127) => Ok(code_of(status)),
        _ => Err(InteropError::Server(format!(
            "the server ended before a UDP socket was bound to port {PORT}, with {status}; it \
             said: {}",
            last_line.join().unwrap_or_default()
        ))),
    }
}

/// Has what a program says go to where this one says it, until it ends; gives its last line.
fn passed_on(said: Option<ChildStderr>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut last = String::new();
        let lines = said.map(|it| BufReader::new(it).lines());
        for line in lines.into_iter().flatten().map_while(Result::ok) {
            eprintln!("{line}");
            last = line;
        }
        last
    })
}

fn command_of(command: &[OsString]) -> Result<Command, InteropError> {
    let missing = || InteropError::Server("give a command".to_owned());
    let (program, arguments) = command.split_first().ok_or_else(missing)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // The runner's names for these two, which differ from its test cases only in requests or
    // delays.
    match env::var("TESTCASE").as_deref() {
        Ok("multiplexing") => command.env("TESTCASE", "transfer"),
        Ok("longrtt") => command.env("TESTCASE", "handshake"),
        _ => &mut command,
    };
    Ok(command)
}

/// Ends the program and all that it started.
fn end(program: &mut Child) {
    let group = Pid::from_child(program);
    // A program that has ended already cannot be signalled.
    let _ = kill_process_group(group, Signal::TERM);
    let mut waited = Duration::ZERO;
    while waited < LAST_WORDS && matches!(program.try_wait(), Ok(None)) {
        pause();
        waited += TICK;
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = program.wait();
}

#[expect(
    clippy::disallowed_methods,
    reason = "nobody else tells that a socket is bound, and no time of the transfer passes \
              meanwhile"
)]
fn pause() {
    thread::sleep(TICK);
}

fn code_of(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Whether a UDP socket of this network namespace is bound to the runner's port.
fn listens() -> bool {
    ["udp", "udp6"].iter().any(|table| {
        let text = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        is_bound(&text, PORT)
    })
}

fn is_bound(table: &str, port: u16) -> bool {
    let ending = format!(":{port:04X}");
    let of_line = |line: &str| {
        line.split_whitespace()
            .nth(1)
            .is_some_and(|it| it.ends_with(&ending))
    };
    table.lines().any(of_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_at_the_port_is_found_in_the_kernels_table() {
        let head = "  sl  local_address rem_address   st tx_queue\n";
        let at = |port: &str| format!("   0: 0100007F:{port} 00000000:0000 07 00000000:00000000\n");
        assert!(is_bound(&[head, &at("01BB")].concat(), 443));
        assert!(!is_bound(&[head, &at("01BC")].concat(), 443));
        assert!(!is_bound(head, 443));
    }

    #[test]
    fn what_a_program_is_made_of_is_its_version() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "abc").unwrap();
        let said = version(&[file.path().into()]);
        assert!(said.ends_with(" of sha256 ba7816bf8f01"), "{said}");
    }
}
