//! A flow in real time: its server is started, then its proxies, then its client, and when the
//! client has ended, the others are asked to end.

use std::fs;
use std::time::{Duration, Instant};

use bentpipe_emulator::{HostName, Running, Topology};
use bentpipe_endpoint::contract::{Bye, ProxyBye, Ready, RequestReport};
use bentpipe_trial::{Drawing, FlowEnd, FlowSetup, Outcome, ProgramExit, Verdict};
use bentpipe_units::{Span, Time};

use super::TrialError;
use super::instructions::instructions;
use super::program::{Event, NoProgram, Program, after, pause};

/// How long a client may take to end when the flow's time is over.
const CUT_GRACE: Duration = Duration::from_secs(3);
/// How long another program may take to end when it is asked to.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// A flow under way.
pub struct FlowRun<'a> {
    setup: &'a FlowSetup<'a>,
    topology: &'a Topology,
    /// From the client to the server, as far as they were started.
    programs: Vec<Option<Program>>,
    /// When its servers, proxies and tunnel were ready, in the time of the trial.
    zero: Time,
    failure: Option<Failure>,
}

/// The end of a flow.
pub struct Ended {
    pub verdict: Verdict,
    /// From the client to the server.
    pub exits: Vec<ProgramExit>,
    /// The same.
    pub ready: Vec<Ready>,
    /// The end of the flow.
    pub at: Time,
}

/// A program that did not do as the contract says.
struct Failure {
    host: HostName,
    outcome: Outcome,
    what: String,
}

impl<'a> FlowRun<'a> {
    /// Starts the flow's server. It is killed when the thread that calls this ends.
    pub fn open(setup: &'a FlowSetup<'a>, topology: &'a Topology) -> Result<Self, TrialError> {
        let mut flow = Self {
            setup,
            topology,
            programs: setup.programs().iter().map(|_| None).collect(),
            zero: Time::ZERO,
            failure: None,
        };
        flow.start(flow.programs.len() - 1)?;
        Ok(flow)
    }

    /// Waits until the server listens.
    pub fn wait_ready(&mut self, deadline: Instant) -> Result<(), TrialError> {
        self.wait_for(self.programs.len() - 1, deadline)
    }

    /// Starts the proxies, that next to the server first, and waits until they listen. They are
    /// killed when the thread that calls this ends.
    pub fn open_proxies(&mut self, deadline: Instant) -> Result<(), TrialError> {
        let proxies = 1..self.programs.len() - 1;
        for number in proxies.rev() {
            if self.failure.is_none() {
                self.start(number)?;
                self.wait_for(number, deadline)?;
            }
        }
        Ok(())
    }

    /// Says that what stands between the ends is there now.
    pub fn begins_at(&mut self, now: Time) {
        self.zero = now;
    }

    /// Plays the flow to its end. Packets in flight when its client has ended get the time `drain`
    /// to arrive.
    pub fn run(mut self, running: &Running, drain: Duration) -> Result<Ended, TrialError> {
        if self.failure.is_some() {
            return Ok(self.end(None, running.now()));
        }
        let start = self.zero() + Span::from_nanos(self.setup.flow().start_ns);
        pause(span(start - running.now().min(start)));
        let mut verdict = self.fetch(running)?;
        let at = running.now();
        self.shutdown(drain);
        // A client that was cut says of a page what has come, too.
        if let (Some(verdict), Some(said)) = (&mut verdict, reported(self.setup, running)) {
            verdict.client.requests = said.requests;
            verdict.drawing = drawn(self.setup, running);
        }
        Ok(self.end(verdict, at))
    }

    /// When flows may begin.
    fn zero(&self) -> Time {
        self.zero + self.setup.job().lead()
    }

    /// Starts the client, and waits for its end, or for the flow's. None: it failed.
    fn fetch(&mut self, running: &Running) -> Result<Option<Verdict>, TrialError> {
        self.start(0)?;
        let (limit, at_limit) = self.limit();
        let Some(client) = &mut self.programs[0] else {
            return Ok(None);
        };
        let ended = client.wait_end(after(span(limit - running.now().min(limit))))?;
        let now = running.now();
        if ended == Event::Deadline {
            return Ok(Some(Verdict::of_end(at_limit, arrived(self.setup), now)));
        }
        let status = client.status();
        let error = match status.code() {
            Some(0) => None,
            Some(127) | None => {
                self.failure = Some(ended_early(HostName::Client, client));
                return Ok(None);
            }
            Some(code) => Some(words(client).unwrap_or_else(|| format!("exit code {code}"))),
        };
        let client = Bye {
            error,
            ..Bye::default()
        };
        Ok(Some(Verdict::of_end(FlowEnd::Done, client, now)))
    }

    /// When it ends at the latest, and what that means.
    fn limit(&self) -> (Time, FlowEnd) {
        let start = Span::from_nanos(self.setup.flow().start_ns);
        match self.setup.flow().duration_ns {
            Some(duration) => (
                self.zero() + start + Span::from_nanos(duration),
                FlowEnd::Cut,
            ),
            None => (
                self.zero() + self.setup.job().scenario.timeout,
                FlowEnd::TimeLimit,
            ),
        }
    }

    /// Ends what still lives: the client first, then the others, when they have had time to receive
    /// the client's end. One of these that is gone by then has failed, whatever became of the
    /// client.
    fn shutdown(&mut self, drain: Duration) {
        if let Some(client) = &mut self.programs[0]
            && !client.has_ended()
        {
            client.terminate(); // so that it may write its logs, or draw what it has
            let _ = client.wait_end(after(CUT_GRACE));
            client.status();
        }
        pause(drain);
        let hosts = self.setup.job().hosts();
        for (host, program) in hosts.into_iter().zip(&mut self.programs).skip(1) {
            let program = program.as_mut().expect("it was ready");
            if program.has_ended() {
                self.failure = Some(ended_early(host, program));
                return;
            }
        }
        for program in self.programs.iter_mut().skip(1).flatten() {
            program.terminate();
        }
        for program in self.programs.iter_mut().skip(1).flatten() {
            // One that does not end is killed.
            let _ = program.wait_end(after(SHUTDOWN_GRACE));
        }
    }

    fn end(mut self, verdict: Option<Verdict>, at: Time) -> Ended {
        let byes = match verdict {
            Some(_) if self.failure.is_none() => self.last_words(),
            _ => Vec::new(),
        };
        let programs = self.programs.into_iter();
        let exits = programs.map(|it| it.map(|mut it| it.exit()).unwrap_or_default());
        let exits: Vec<ProgramExit> = exits.collect();
        let ready = |(host, variant): (HostName, &bentpipe_trial::Variant)| {
            let bye = byes.iter().find(|(of, _)| *of == host);
            let version = bye.map(|(_, bye)| bye.version.clone());
            Ready {
                stack: variant.name.clone(),
                version: version.or(variant.version.clone()).unwrap_or_default(),
                driver: "sockets".to_owned(),
                next_wake: None,
                shared_memory: false,
                paths: false,
            }
        };
        let ready = self.setup.programs().into_iter().map(ready).collect();
        let verdict = match (self.failure, verdict) {
            (None, Some(mut verdict)) => {
                for (host, bye) in byes {
                    verdict.hear(host, bye.error.as_deref(), bye.statistics);
                }
                verdict
            }
            (failure, _) => {
                let failure = failure.expect("without a verdict something failed");
                failed(self.setup, &failure, &exits)
            }
        };
        Ended {
            verdict,
            exits,
            ready,
            at,
        }
    }

    /// The final reports of the proxies. One without a report has failed.
    fn last_words(&mut self) -> Vec<(HostName, ProxyBye)> {
        let mut byes = Vec::new();
        for (place, program) in self.setup.job().hosts().into_iter().zip(&mut self.programs) {
            let is_proxy = matches!(place, HostName::Terminal | HostName::Gateway);
            let Some(program) = program.as_mut().filter(|_| is_proxy) else {
                continue;
            };
            let last = program.last_said().unwrap_or_default();
            match serde_json::from_str::<ProxyBye>(&last) {
                Ok(bye) => byes.push((place, bye)),
                Err(error) => {
                    let status = program.status();
                    let what = format!(
                        "did not say what it counted when it was told to end ({status}): {error}"
                    );
                    self.failure = Some(Failure {
                        host: place,
                        outcome: Outcome::Crashed,
                        what,
                    });
                }
            }
        }
        byes
    }

    /// Starts the program with that number. One that cannot be started has failed.
    fn start(&mut self, number: usize) -> Result<(), TrialError> {
        let (host, variant) = self.setup.programs()[number];
        let command = &variant.command;
        let instructions = instructions(self.setup, number);
        match Program::start(self.topology.host(host), command, &instructions) {
            Ok(program) => self.programs[number] = Some(program),
            Err(NoProgram::Start(error)) => {
                let program = command.first().map_or("an empty command", String::as_str);
                self.failure = Some(Failure {
                    host,
                    outcome: Outcome::Crashed,
                    what: format!("cannot start {program}: {error}"),
                });
            }
            Err(NoProgram::Emulator(error)) => return Err(error.into()),
            Err(NoProgram::System(error)) => {
                let program = command.first().map_or("", String::as_str);
                return Err(format!("starting {program}: {error}").into());
            }
        }
        Ok(())
    }

    /// Waits until a program that was started listens.
    fn wait_for(&mut self, number: usize, deadline: Instant) -> Result<(), TrialError> {
        let (host, _) = self.setup.programs()[number];
        let Some(program) = &mut self.programs[number] else {
            return Ok(());
        };
        match program.wait_ready(deadline)? {
            Event::Ready => {}
            Event::Ended => self.failure = Some(ended_early(host, program)),
            Event::Deadline => {
                let seconds = self.setup.job().silence_s;
                self.failure = Some(Failure {
                    host,
                    outcome: Outcome::Crashed,
                    what: format!("did not print a line `ready` within {seconds} s"),
                });
            }
        }
        Ok(())
    }
}

/// A client's report of the page that it has loaded, if it wrote one, in the time of the trial.
fn reported(setup: &FlowSetup, running: &Running) -> Option<Bye> {
    let said = Bye::read(&setup.report()?).ok()?;
    Some(said.earlier(Duration::from_nanos(running.start_unix_ns())))
}

/// A browser's report of how it drew its page, in the time of the trial.
fn drawn(setup: &FlowSetup, running: &Running) -> Drawing {
    let zero = Duration::from_nanos(running.start_unix_ns());
    let said = setup.report().map(|report| Drawing::read(&report, zero));
    said.and_then(Result::ok).unwrap_or_default()
}

/// The report of a client that was cut: the bytes that are in its files.
fn arrived(setup: &FlowSetup) -> Bye {
    let report = |path: &String| RequestReport {
        path: path.clone(),
        asked_ns: None,
        bytes: fs::metadata(setup.downloads().join(path.trim_start_matches('/')))
            .map_or(0, |file| file.len()),
        first_byte_ns: None,
        last_byte_ns: None,
    };
    let lasts = setup.flow().duration_ns.is_some();
    let requests = setup.flow().requests.iter().filter(|_| lasts);
    Bye {
        requests: requests.map(report).collect(),
        ..Bye::default()
    }
}

fn ended_early(host: HostName, program: &mut Program) -> Failure {
    let status = program.status();
    let (outcome, what) = match status.code() {
        Some(127) => (
            Outcome::Unsupported,
            "does not support this: it exited with 127".to_owned(),
        ),
        _ => (Outcome::Crashed, format!("ended by itself: {status}")),
    };
    Failure {
        host,
        outcome,
        what,
    }
}

fn failed(setup: &FlowSetup, failure: &Failure, exits: &[ProgramExit]) -> Verdict {
    let host = failure.host;
    let mut programs = setup.programs().into_iter().zip(exits);
    let ((_, variant), exits) = programs
        .find(|((of, _), _)| *of == host)
        .expect("it is one of them");
    let said = exits.last_line();
    let said = said.map(|line| format!("; it said: {line}"));
    let (name, what) = (&variant.name, &failure.what);
    let detail = format!("{name} as {host} {what}{}", said.unwrap_or_default());
    Verdict::of_failure(host, failure.outcome, detail)
}

/// The last line of a client that failed. Timeouts have fixed texts (`endpoints/CONTRACT.md`).
fn words(client: &mut Program) -> Option<String> {
    let line = client.last_line()?;
    let timeout = ["idle timeout", "handshake timeout"];
    let timeout = timeout.into_iter().find(|words| line.contains(words));
    Some(timeout.map_or(line.clone(), str::to_owned))
}

fn span(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}
