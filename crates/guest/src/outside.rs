//! The side of the coordinator: HELLO becomes a guest's task, its messages go through, and BYE is
//! made from what the guest leaves.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use bentpipe_endpoint::EndpointError;
use bentpipe_endpoint::contract::{
    BYE, Bye, FINISH, HELLO, Hello, NEVER, RAN, READY, RUN, Ran, Ready, RequestReport, Statistics,
    encode_message, message_name,
};
use bentpipe_endpoint::driver::Pipes;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::Wanted;
use crate::greeting::Greeting;
use crate::machine::{self, Machine};
use crate::printed::Printed;
use crate::task::{
    self, CommandReport, DOWNLOADS, LAST_LINE, LIVE, PAGE, QLOG, REPORT, Report, TASK, VERSION,
};

/// How long the body of RAN is before its datagrams, and where it counts them.
const RAN_HEAD: usize = 13;
const COUNT: std::ops::Range<usize> = 9..13;
const NOT_SUPPORTED: u8 = 127;

/// Answers a coordinator until it says FINISH or goes away.
pub fn run(wanted: &Wanted) -> Result<ExitCode, EndpointError> {
    let mut pipes = Pipes::inherited();
    let Some((kind, body)) = pipes.receive()? else {
        return Ok(ExitCode::SUCCESS);
    };
    if kind != HELLO {
        let what = format!("{} in place of HELLO", message_name(kind));
        return Err(EndpointError::Conversation(what));
    }
    let greeting = Greeting::read(body)?;
    // Before the machine starts, which is not to have the descriptor.
    let shared_memory = pipes.share(greeting.shared_memory())?;
    let folder = TempDir::with_prefix("bentpipe-guest-").map_err(EndpointError::file("TMPDIR"))?;
    let printed = match wanted.folder {
        Some(_) => {
            machine::end_with_parent()?;
            Some(Printed::inherited(folder.path())?)
        }
        None => None,
    };
    for name in [DOWNLOADS, QLOG] {
        fs::create_dir(folder.path().join(name)).map_err(EndpointError::file(name))?;
    }
    task::write(&folder.path().join(TASK), &greeting.task(wanted)?)?;
    task::write(&folder.path().join(PAGE), &greeting.page())?;
    task::write(&folder.path().join(LIVE), &greeting.live())?;
    let mut guest = Guest {
        machine: Machine::start(wanted, folder.path(), &greeting)?,
        greeting,
        folder,
        held: Vec::new(),
        printed,
    };
    let Some(ready) = guest.begin(wanted)? else {
        return Ok(ExitCode::from(NOT_SUPPORTED));
    };
    let ready = Ready {
        shared_memory,
        paths: false,
        ..ready
    };
    pipes.send(&encode_message(READY, &serde_json::to_vec(&ready)?))?;
    guest.converse(&mut pipes)?;
    Ok(ExitCode::SUCCESS)
}

/// A guest under way.
struct Guest {
    machine: Machine,
    greeting: Greeting,
    folder: TempDir,
    /// The body of the first RAN, which answers no RUN: what left at time zero.
    held: Vec<u8>,
    /// The output of a command.
    printed: Option<Printed>,
}

impl Guest {
    /// Waits until time zero; none if what HELLO asks for is not supported.
    fn begin(&mut self, wanted: &Wanted) -> Result<Option<Ready>, EndpointError> {
        let first = self.ran()?;
        self.hand_on()?;
        let Some(body) = first else {
            if self.printed.is_some() {
                let problem = self.report_of_command()?.problem;
                return Err(EndpointError::Failed(problem.unwrap_or_default()));
            }
            return match self.report()? {
                Some(report) if report.code == Some(NOT_SUPPORTED.into()) => Ok(None),
                report => Err(before_zero(report, &self.last_line())),
            };
        };
        let first = if self.greeting.is_proxy() {
            Ran::decode_of_proxy(&body)?
        } else {
            Ran::decode(&body)?
        };
        let next_wake = if first.departures.is_empty() {
            first.next_wake
        } else {
            self.held = body;
            0
        };
        let version = self.folder.path().join(VERSION);
        let version = fs::read_to_string(&version).map_err(EndpointError::file(version))?;
        Ok(Some(Ready {
            stack: name(&wanted.command),
            version,
            driver: "socket mode on a Linux kernel of its own in virtual time, \
                 whose processor takes no time"
                .to_owned(),
            next_wake: (next_wake != NEVER).then_some(next_wake),
            shared_memory: false,
            paths: false,
        }))
    }

    /// Hands on RUN and RAN, until FINISH is answered with BYE or the coordinator goes away.
    fn converse<R: Read, W: Write>(
        &mut self,
        pipes: &mut Pipes<R, W>,
    ) -> Result<(), EndpointError> {
        while let Some((kind, body)) = pipes.receive()? {
            match kind {
                RUN => {
                    self.machine.send(&encode_message(RUN, body))?;
                    let ran = self.ran()?.ok_or_else(|| {
                        EndpointError::Failed("the guest has ended by itself".to_owned())
                    })?;
                    self.hand_on()?;
                    let ran = joined(&std::mem::take(&mut self.held), ran);
                    pipes.send(&encode_message(RAN, &ran))?;
                }
                FINISH => {
                    self.machine.send(&encode_message(FINISH, &[]))?;
                    self.machine.leave()?;
                    self.hand_on()?;
                    return pipes.send(&encode_message(BYE, &self.last_words()?));
                }
                other => {
                    let what = format!("{} in place of RUN or FINISH", message_name(other));
                    return Err(EndpointError::Conversation(what));
                }
            }
        }
        Ok(())
    }

    /// The body of its next RAN; none if it has ended.
    fn ran(&mut self) -> Result<Option<Vec<u8>>, EndpointError> {
        match self.machine.receive() {
            Ok(Some((RAN, body))) => Ok(Some(body.to_vec())),
            Ok(Some((other, _))) => Err(EndpointError::Failed(format!(
                "the guest says {} in place of RAN",
                message_name(other)
            ))),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// BYE, as JSON.
    fn last_words(&self) -> Result<Vec<u8>, EndpointError> {
        Ok(match (&self.greeting, &self.printed) {
            (_, Some(_)) => serde_json::to_vec(&self.bye_of_command()?)?,
            (Greeting::Endpoint(hello), None) => serde_json::to_vec(&self.bye(hello)?)?,
            (Greeting::Proxy(_), None) => serde_json::to_vec(&self.bye_of_proxy())?,
        })
    }

    /// Hands on what a command has printed.
    fn hand_on(&mut self) -> Result<(), EndpointError> {
        self.printed.as_mut().map_or(Ok(()), Printed::hand_on)
    }

    fn report_of_command(&self) -> Result<CommandReport, EndpointError> {
        let report = task::read(&self.folder.path().join(REPORT))?;
        report.ok_or_else(|| EndpointError::Failed("the guest did not come up".to_owned()))
    }

    /// How a command ended, as `bentpipe-sim shell` wants to know it.
    fn bye_of_command(&self) -> Result<Bye, EndpointError> {
        let report = self.report_of_command()?;
        let mut statistics = Statistics::default();
        statistics.say("exit_code", report.code);
        statistics.say("ended_ns", report.ended_ns);
        Ok(Bye {
            error: report.problem,
            statistics,
            ..Bye::default()
        })
    }

    fn report(&self) -> Result<Option<Report>, EndpointError> {
        task::read(&self.folder.path().join(REPORT))
    }

    /// Puts the program's files where HELLO wants them, and says what is known of its requests.
    fn bye(&self, hello: &Hello) -> Result<Bye, EndpointError> {
        let report = self.report()?;
        for (name, place) in self.greeting.outputs() {
            hand_over(&self.folder.path().join(name), place)?;
        }
        let said = self.folder.path().join(task::BYE);
        let said = said.exists().then(|| Bye::read(&said)).transpose()?;
        let said = said.map(|it| it.earlier(Duration::from_secs(hello.epoch_unix_s)));
        let ended = report.filter(|it| it.code == Some(0));
        let requests = hello.requests.iter().map(|url| {
            let path = url.strip_prefix("https://server:443").unwrap_or(url);
            // Of an upload it is known that all was taken, or nothing.
            let sent = hello.www.as_ref().filter(|_| ended.is_some());
            let stored = hello.downloads.as_ref().or(sent);
            let file = stored.map(|folder| folder.join(path.trim_start_matches('/')));
            RequestReport {
                path: path.to_owned(),
                asked_ns: None,
                bytes: file.map_or(0, |it| fs::metadata(it).map_or(0, |it| it.len())),
                first_byte_ns: None,
                last_byte_ns: ended.and_then(|it| it.ended_ns),
            }
        });
        Ok(Bye {
            handshake_ns: None,
            requests: said.map_or_else(|| requests.collect(), |it| it.requests),
            error: match report {
                Some(report) => failure(report),
                None => Some("the guest ended without a report".to_owned()),
            },
            ..Bye::default()
        })
    }
}

impl Guest {
    /// The last line that a server or a proxy printed; empty if there is none.
    fn last_line(&self) -> String {
        fs::read_to_string(self.folder.path().join(LAST_LINE)).unwrap_or_default()
    }

    /// A proxy's BYE in socket mode (`endpoints/contract/middleboxes.md`), without its version,
    /// which READY had.
    fn bye_of_proxy(&self) -> Value {
        let line = self.last_line();
        let mut said: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let error = self.report().ok().flatten().and_then(failure);
            json!({"error": error.unwrap_or_else(|| format!("it said no BYE, but {line:?}"))})
        });
        if let Some(said) = said.as_object_mut() {
            said.remove("version");
        }
        said
    }
}

/// How a program failed, in words.
fn failure(report: Report) -> Option<String> {
    match (report.code, report.signal) {
        // SIGTERM is what FINISH comes to for one that was not done.
        (Some(0), _) | (None, Some(15)) => None,
        (Some(code), _) => Some(format!("the program ended with {code}")),
        (None, signal) => Some(format!(
            "the program was ended by signal {}",
            signal.unwrap_or_default()
        )),
    }
}

fn before_zero(report: Option<Report>, last_line: &str) -> EndpointError {
    let said = if last_line.is_empty() {
        String::new()
    } else {
        format!("; it said: {last_line}")
    };
    let how = report.and_then(failure).map(|how| how + &said);
    let nothing = match report {
        Some(_) => "the program ended, and had sent nothing",
        None => "the guest did not come up",
    };
    EndpointError::Failed(how.unwrap_or_else(|| nothing.to_owned()))
}

/// The name of a stack by that of its program.
fn name(command: &[String]) -> String {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    let program = program.unwrap_or_default().to_string_lossy();
    program
        .strip_prefix("bentpipe-endpoint-")
        .unwrap_or(&program)
        .to_owned()
}

/// One RAN of two: what left before the run, which was nobody's yet, and the answer to it.
fn joined(held: &[u8], ran: Vec<u8>) -> Vec<u8> {
    if held.is_empty() {
        return ran;
    }
    let count = |body: &[u8]| u32::from_le_bytes(*body[COUNT].first_chunk().expect("four bytes"));
    let mut all = ran[..RAN_HEAD].to_vec();
    all[COUNT].copy_from_slice(&(count(held) + count(&ran)).to_le_bytes());
    all.extend_from_slice(&held[RAN_HEAD..]);
    all.extend_from_slice(&ran[RAN_HEAD..]);
    all
}

/// Moves a file, or what is in a folder, to its place. What is not there was not written.
fn hand_over(from: &Path, to: &Path) -> Result<(), EndpointError> {
    if from.is_dir() {
        fs::create_dir_all(to).map_err(EndpointError::file(to))?;
        for entry in fs::read_dir(from).map_err(EndpointError::file(from))? {
            let entry = entry.map_err(EndpointError::file(from))?;
            hand_over(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if !from.exists() || fs::rename(from, to).is_ok() {
        return Ok(());
    }
    // Another file system.
    fs::copy(from, to)
        .map(drop)
        .map_err(EndpointError::file(to))
}

#[cfg(test)]
mod tests {
    use bentpipe_endpoint::contract::RanMessage;

    use super::*;

    fn ran(times: &[u64], wake: u64) -> Vec<u8> {
        let mut message = RanMessage::new();
        for time in times {
            message.push(*time, 0, b"packet");
        }
        message.finish(wake, false)[5..].to_vec()
    }

    #[test]
    fn what_left_before_the_first_run_is_in_its_answer() {
        let both = joined(&ran(&[0, 0], 7), ran(&[3], 9));
        let both = Ran::decode(&both).unwrap();
        let times: Vec<u64> = both.departures.iter().map(|it| it.time).collect();
        assert_eq!((times, both.next_wake), (vec![0, 0, 3], 9));
        assert_eq!(joined(&[], ran(&[3], 9)), ran(&[3], 9));
    }

    #[test]
    fn files_move_into_folders_that_are_there_or_not() {
        let folder = TempDir::new().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::write(from.join("inner/file"), "text").unwrap();
        hand_over(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("inner/file")).unwrap(), "text");
        hand_over(&from.join("absent"), &to.join("absent")).unwrap();
        assert!(!to.join("absent").exists());
    }
}
