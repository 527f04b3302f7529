//! A command: a program that knows nothing of the contract, and is started as a shell does it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use bentpipe_endpoint::EndpointError;

use super::listening::somebody_listens;
use super::{DONE, Event, Guest, IS_DONE, NOW, SHARED, WHEN_UNUSED};
use super::{ended, now, printed, set, wait};
use crate::task::{CommandReport, Part, REPORT, Surroundings, write};

/// Virtual time between two looks whether the server listens.
const LOOK: Duration = Duration::from_millis(20);
/// How often a server is looked at before the client starts without it.
const LOOKS: u32 = 250;
/// Virtual time in which all that was printed has been taken: it goes on when nothing is left to
/// do.
const A_MOMENT: Duration = Duration::from_millis(1);
/// The exit codes of what cannot be started, as shells have them.
const NOT_FOUND: i32 = 127;
const NOT_STARTED: i32 = 126;
const COME: &str = "/sys/class/net/tt0/statistics/rx_packets";

impl Guest<'_> {
    /// Runs a command. A server is waited for until it listens, a client starts at time zero.
    pub(super) fn run_command(&mut self, around: &Surroundings) -> Result<(), EndpointError> {
        let started = if self.task.part == Part::Server {
            let mut started = self.start_command(around);
            if let Ok(program) = &mut started
                && let Some(status) = self.await_listening(program)?
            {
                wait(A_MOMENT);
                return report(&too_early(status));
            }
            set(DONE, WHEN_UNUSED)?;
            self.begin(NOW)?;
            started
        } else {
            self.begin(NOW)?;
            self.start_command(around)
        };
        let found = match started {
            Ok(mut program) => {
                let status = self.await_end(&mut program)?;
                self.found(status)
            }
            Err(found) => found,
        };
        wait(A_MOMENT);
        report(&found)?;
        // Data that it has written to sockets are still sent, if there is a peer.
        set(DONE, if has_heard() { WHEN_UNUSED } else { IS_DONE })?;
        while !matches!(self.events.1.recv(), Ok(Event::Finish) | Err(_)) {}
        Ok(())
    }

    /// Starts the command; a report that says why it cannot be.
    fn start_command(&self, around: &Surroundings) -> Result<Child, CommandReport> {
        let (program, arguments) = self.task.command.split_first().unwrap_or_else(|| {
            unreachable!("the command line asks for one");
        });
        let mut starter = Command::new(program);
        starter
            .args(arguments)
            .env_clear()
            .envs(&self.task.environment)
            .current_dir(&around.folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = starter.spawn().map_err(|error| {
            let (code, why) = match error.kind() {
                ErrorKind::NotFound => (NOT_FOUND, "command not found".to_owned()),
                _ => (NOT_STARTED, error.to_string()),
            };
            CommandReport {
                code,
                ended_ns: None,
                problem: Some(format!("{program}: {why}")),
            }
        })?;
        printed::take(&mut child);
        Ok(child)
    }

    /// Waits until the server listens, or for so long that it may never do; its exit status if it
    /// ends before.
    fn await_listening(&self, program: &mut Child) -> Result<Option<ExitStatus>, EndpointError> {
        for _ in 0..LOOKS {
            match self.events.1.recv_timeout(LOOK) {
                Ok(Event::Finish) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(Event::Ready | Event::Child) | Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(status) = ended(program)? {
                return Ok(Some(status));
            }
            if somebody_listens() {
                return Ok(None);
            }
        }
        printed::note("note: the server's command listens on no port yet");
        Ok(None)
    }

    /// A report of how the command has just ended.
    fn found(&self, status: ExitStatus) -> CommandReport {
        let ended = self.zero.map(|zero| now().saturating_sub(zero));
        CommandReport {
            code: code_of(status),
            ended_ns: ended.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            problem: None,
        }
    }
}

fn too_early(status: ExitStatus) -> CommandReport {
    let code = code_of(status);
    CommandReport {
        code,
        ended_ns: None,
        problem: Some(format!("its command ended before it listened, with {code}")),
    }
}

fn code_of(status: ExitStatus) -> i32 {
    let signal = status.signal().unwrap_or_default();
    status.code().unwrap_or(128 + signal)
}

fn report(found: &CommandReport) -> Result<(), EndpointError> {
    rustix::fs::sync();
    write(&Path::new(SHARED).join(REPORT), found)
}

/// Whether a packet has ever come: where none has, nobody waits for what is not sent yet.
fn has_heard() -> bool {
    fs::read_to_string(COME).is_ok_and(|count| count.trim() != "0")
}
