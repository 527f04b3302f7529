//! How a trial ended, by what its programs did: as in real time, where the same rules hold
//! (`crates/emulator`).

use std::fs;
use std::time::Duration;

use bentpipe_endpoint::contract::{Bye, Ready, RequestReport};
use bentpipe_link::HostName;
use bentpipe_trial::{FlowEnd, FlowSetup, Outcome, ProgramExit, Verdict};
use bentpipe_units::Time;

use super::observed::{Observed, Program};
use super::qlog_times;

const ENDS: [HostName; 2] = [HostName::Client, HostName::Server];

/// The verdict before files and wire are looked at, and what its times are from.
pub fn verdict(setup: &FlowSetup, observed: &Observed) -> (Verdict, &'static str) {
    for (host, program) in ENDS.into_iter().zip(&observed.programs) {
        if let Some(failed) = failed(setup, host, program, observed.is_done) {
            return (failed, "client");
        }
    }
    let now = time(observed, observed.ended_unix_ns);
    let client = &observed.programs[0];
    let (end, error) = match (observed.is_done, setup.flow().duration_ns) {
        (true, _) => (FlowEnd::Done, words(client)),
        (false, Some(_)) => (FlowEnd::Cut, None),
        (false, None) => (FlowEnd::TimeLimit, None),
    };
    let (said, source) = reported(setup, observed);
    (Verdict::of_end(end, Bye { error, ..said }, now), source)
}

/// True if files came, all or some of them.
pub fn has_come(setup: &FlowSetup, observed: &Observed) -> bool {
    let is_done = observed.is_done && observed.programs[0].code == Some(0);
    let mut requests = setup.flow().requests.iter();
    is_done || requests.any(|path| stored(setup, path) > 0)
}

/// A time of the trial, which begins with its client.
pub fn time(observed: &Observed, at_unix_ns: i64) -> Time {
    let since = at_unix_ns - observed.begun_unix_ns;
    Time::from_nanos(u64::try_from(since).unwrap_or_default())
}

/// The exits of both programs.
pub fn exits(observed: &Observed) -> Vec<ProgramExit> {
    let exit = |program: &Program| ProgramExit {
        cpu: Duration::from_secs_f64(program.cpu_s.max(0.0)),
        peak_memory_bytes: program.memory_bytes,
        log: program.said.clone().into_bytes(),
        messages: Vec::new(),
    };
    observed.programs.iter().map(exit).collect()
}

/// The READYs of both programs, as they would be in virtual time.
pub fn ready(setup: &FlowSetup) -> Vec<Ready> {
    let programs = setup.programs().into_iter();
    let ready = programs.map(|(_, variant)| Ready {
        stack: variant.name.clone(),
        version: variant.version.clone().unwrap_or_default(),
        driver: "sockets".to_owned(),
        next_wake: None,
        shared_memory: false,
        paths: false,
    });
    ready.collect()
}

/// The verdict on a program that did not do as the contract says.
fn failed(setup: &FlowSetup, host: HostName, program: &Program, is_done: bool) -> Option<Verdict> {
    let is_client = host == HostName::Client;
    let (outcome, what) = match (&program.failure, program.code, program.signal) {
        (Some(what), Some(127), _) => (
            Outcome::Unsupported,
            format!("does not support this: it exited with 127 ({what})"),
        ),
        (Some(what), _, _) => (Outcome::Crashed, what.clone()),
        (None, Some(127), _) if is_client => (
            Outcome::Unsupported,
            "does not support this: it exited with 127".to_owned(),
        ),
        (None, None, Some(signal)) if is_client && is_done => {
            (Outcome::Crashed, format!("was ended by signal {signal}"))
        }
        _ => return None,
    };
    let (_, variant) = setup.programs()[usize::from(!is_client)];
    let said = last_line(program).map(|line| format!("; it said: {line}"));
    let detail = format!(
        "{} as {host} {what}{}",
        variant.name,
        said.unwrap_or_default()
    );
    Some(Verdict::of_failure(host, outcome, detail))
}

fn last_line(program: &Program) -> Option<&str> {
    let lines = program.said.lines().rev().map(str::trim);
    lines.into_iter().find(|line| !line.is_empty())
}

/// Why a client ended that failed. Timeouts have their own words (`endpoints/CONTRACT.md`).
fn words(client: &Program) -> Option<String> {
    let code = client.code.filter(|code| *code != 0)?;
    let Some(line) = last_line(client) else {
        return Some(format!("exit code {code}"));
    };
    let timeouts = ["idle timeout", "handshake timeout"];
    let timeout = timeouts.into_iter().find(|words| line.contains(words));
    Some(timeout.unwrap_or(line).to_owned())
}

/// The client's report of its requests, in the time of the trial, and its source: its report, its
/// qlog, or its end.
fn reported(setup: &FlowSetup, observed: &Observed) -> (Bye, &'static str) {
    let begun = Duration::from_nanos(observed.begun_unix_ns.unsigned_abs());
    if let Some(report) = setup.report() {
        let said = Bye::read(&report).map(|it| it.earlier(begun));
        return (said.unwrap_or_default(), "client");
    }
    let folder = setup.qlog_of(HostName::Client);
    let logged = folder.and_then(|it| qlog_times::read(&it));
    let ended = time(observed, observed.ended_unix_ns).as_nanos();
    let source = if logged.is_some() { "qlog" } else { "exit" };
    let times = logged.unwrap_or_default();
    let last = times.last_byte_ns.unwrap_or(ended);
    let requests = setup.flow().requests.iter().map(|path| RequestReport {
        path: path.clone(),
        asked_ns: None,
        bytes: stored(setup, path),
        first_byte_ns: times.first_byte_ns,
        last_byte_ns: observed.is_done.then_some(last),
    });
    let said = Bye {
        handshake_ns: times.handshake_ns,
        requests: requests.collect(),
        ..Bye::default()
    };
    (said, source)
}

fn stored(setup: &FlowSetup, path: &str) -> u64 {
    let file = setup.downloads().join(path.trim_start_matches('/'));
    fs::metadata(file).map_or(0, |it| it.len())
}
