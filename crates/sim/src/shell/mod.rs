//! `bentpipe-sim shell`: two commands, programs that know nothing of the contract, in guests with
//! the links of a scenario between them.
//!
//! Both are a flow as those of a trial are, but that nobody judges it: what they print is the
//! user's, and the client's exit code is this program's.

mod job;
mod summary;

use std::error::Error;
use std::io::{read_to_string, stderr, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::Instant;

use bentpipe_endpoint::contract::{self, Bye};
use bentpipe_link::HostName;
use bentpipe_trial::{FlowEnd, HopTrace, Role, SentMessage};
use bentpipe_units::Time;
use rustix::process::{Signal, set_parent_process_death_signal};
use tempfile::TempDir;

use self::job::ShellJob;
use self::summary::Summary;
use crate::child::{Child, ChildError};
use crate::coordinator::Coordinator;
use crate::flow::{FlowRun, Limits};
use crate::node::{KnownPaths, Node};
use crate::packet::DatagramForm;
use crate::processor;
use crate::programs::{await_ready, parse};
use crate::trial::check_delays;

const ROLES: [Role; 2] = [Role::Client, Role::Server];

/// How the client's command ended.
struct End {
    /// Its exit code.
    code: u8,
    /// Why it was not started.
    problem: Option<String>,
    at: Time,
}

/// Reads a job from standard input, runs it, and sums it up on standard error.
pub fn from_standard_input() -> ExitCode {
    processor::stay_on_this_one(); // both commands live in guests
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long it took is told to the user, and decides nothing"
)]
fn run() -> Result<ExitCode, Box<dyn Error>> {
    // When the user's process is killed, nothing goes on without it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let start = Instant::now();
    let job: ShellJob = serde_json::from_str(&read_to_string(stdin())?)?;
    let hop = job.scenario.hop(HostName::Client, HostName::Server);
    check_delays(&[hop])?;
    let scratch = tempfile::Builder::new().prefix("bentpipe-").tempdir()?;
    let flow = begin(&job, &scratch)?;
    let mut coordinator = Coordinator::new(vec![flow], &[hop], job.seed.0);
    coordinator.run();
    let end = shutdown(&mut coordinator.flows[0]);
    let seen = coordinator.observation();
    if let Some(path) = &job.trace {
        let trace = HopTrace {
            program: "bentpipe-sim",
            hosts: [hop.from, hop.to],
            log: &seen.hops[0].log,
            key_log: &[],
            ends: vec![vec![job.ends()]],
        };
        trace
            .write(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let end = end?;
    if let Some(problem) = end.problem {
        eprintln!("error: {problem}");
        eprintln!("hint: a guest sees this machine's programs, by the PATH of this shell");
    } else {
        eprintln!("{}", Summary::new(&seen, end.at, start.elapsed()));
    }
    Ok(end.code.into())
}

/// Starts both guests, and waits until the server listens and the client is about to start.
fn begin(job: &ShellJob, scratch: &TempDir) -> Result<FlowRun, String> {
    let started = ROLES.map(|role| start(job, role, scratch));
    let mut children = Vec::new();
    for child in started {
        children.push(child.map_err(|error| error.to_string())?);
    }
    let ready = match await_ready(&mut children) {
        Ok(ready) => ready,
        Err(error) => {
            let (problem, line) = (explained(&error, &mut children), &job.server);
            return Err(match error {
                ChildError::Ended {
                    host: HostName::Server,
                    ..
                } => {
                    format!("{problem}\nhint: its command line is {line}")
                }
                _ => problem,
            });
        }
    };
    let programs = children.into_iter().zip(ROLES).zip(&ready);
    let nodes = programs.map(|((child, role), ready)| {
        Node::new(
            role.host(),
            child,
            (DatagramForm::Any, KnownPaths::First),
            ready,
            Time::ZERO,
        )
    });
    // Only the user decides when it has taken too long.
    let limits = Limits {
        timeout: Time::NEVER,
        cut: None,
    };
    Ok(FlowRun::new(nodes.collect(), limits))
}

fn start(job: &ShellJob, role: Role, scratch: &TempDir) -> Result<Child, ChildError> {
    let host = role.host();
    let command = job.guest_of(host);
    let shown = shown(role).map_err(|source| ChildError::Io { host, source })?;
    let mut child = Child::start_with(host, &command, scratch.path(), job.silence(), shown)?;
    let hello = serde_json::to_vec(&job.hello(role)).expect("HELLO is plain data");
    child.send(SentMessage::Other(contract::encode_message(
        contract::HELLO,
        &hello,
    )))?;
    Ok(child)
}

/// Where standard output and error of a command go: all of the server's to standard error, so that
/// standard output is the client's alone.
fn shown(role: Role) -> std::io::Result<Vec<OwnedFd>> {
    let error = stderr().as_fd().try_clone_to_owned()?;
    let output = match role {
        Role::Client => stdout().as_fd().try_clone_to_owned()?,
        Role::Server => error.try_clone()?,
    };
    Ok(vec![output, error])
}

/// Ends both guests, and returns how the client's command ended.
fn shutdown(flow: &mut FlowRun) -> Result<End, String> {
    let finished = match flow.end.take() {
        Some(Ok(FlowEnd::Done)) => flow.finish(),
        Some(Err(error)) => Err(error),
        _ => {
            let what = "nothing will ever happen any more: the client's command waits in vain";
            return Err(format!("{what}\nhint: see what both have printed"));
        }
    };
    let heard = finished.and_then(|byes| {
        let client = &mut flow.nodes()[0].child;
        let bye: Bye = parse(&byes[0], client, "BYE")?;
        for node in flow.nodes() {
            node.child.leave()?;
        }
        Ok(bye)
    });
    match heard {
        Ok(bye) => Ok(end_of(bye)),
        Err(error) => {
            let mut children: Vec<&mut Child> = Vec::new();
            children.extend(flow.nodes().iter_mut().map(|node| &mut node.child));
            Err(explained(&error, children))
        }
    }
}

fn end_of(bye: Bye) -> End {
    let (mut code, mut at) = (1, 0);
    for (name, value) in bye.statistics.into_entries() {
        match (name.as_str(), value.as_u64()) {
            ("exit_code", Some(said)) => code = u8::try_from(said).unwrap_or(1),
            ("ended_ns", Some(said)) => at = said,
            _ => {}
        }
    }
    End {
        code,
        problem: bye.error,
        at: Time::from_nanos(at),
    }
}

/// An error of a guest, in its own words if it has any.
fn explained<'a>(error: &ChildError, children: impl IntoIterator<Item = &'a mut Child>) -> String {
    let host = error.host();
    let mut children = children.into_iter();
    let said = children
        .find(|child| child.host() == host)
        .and_then(|child| child.exit().last_line());
    match (error, said) {
        (ChildError::Silent { .. } | ChildError::Slow { .. }, _) => format!(
            "{error}\nhint: no virtual time passes while a program computes: one that waits in a \
             loop waits for ever; BENTPIPE_SILENCE_S is how long one may compute"
        ),
        (_, Some(said)) => {
            let said = said.strip_prefix("bentpipe-guest: ").unwrap_or(&said);
            format!("{host}: {said}")
        }
        (_, None) => error.to_string(),
    }
}
