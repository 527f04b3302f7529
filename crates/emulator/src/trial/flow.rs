//! A flow in real time: its server is started, then its client, and when the client has ended, the server is told to.

use std::error::Error;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bentpipe_emulator::{HostName, Running, Topology};
use bentpipe_endpoint::contract::{Bye, RequestReport};
use bentpipe_trial::{End, Outcome, Play, Remains, Role, Verdict};
use bentpipe_units::{Span, Time};

use super::program::{Event, NoProgram, Program, after, pause};

/// How long a client may take to end when the flow's time is over.
const CUT_PATIENCE: Duration = Duration::from_secs(1);
/// How long a server may take to end when it is told to.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// The address of the server's host, the same for all flows.
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The port of the first flow's server; further flows have those behind it.
const FIRST_PORT: u16 = 443;

/// What goes wrong without being the programs' fault.
pub type Trouble = Box<dyn Error + Send + Sync>;

/// A flow under way.
pub struct Flow<'a> {
    play: &'a Play<'a>,
    topology: &'a Topology,
    client: Option<Program>,
    server: Option<Program>,
    failure: Option<Failure>,
}

/// What became of a flow.
pub struct Ended {
    pub verdict: Verdict,
    pub remains: [Remains; 2],
    /// Until when it was there.
    pub at: Time,
}

/// A program that did not do as the contract says.
struct Failure {
    role: Role,
    outcome: Outcome,
    what: String,
}

/// The address and port of a flow's server.
pub fn server_port(play: &Play) -> u16 {
    FIRST_PORT + u16::try_from(play.number()).expect("a job has fewer flows")
}

impl<'a> Flow<'a> {
    /// Starts the flow's server. It is killed when the thread that calls this ends.
    pub fn open(play: &'a Play<'a>, topology: &'a Topology) -> Result<Self, Trouble> {
        let mut flow = Self {
            play,
            topology,
            client: None,
            server: None,
            failure: None,
        };
        match flow.start(Role::Server)? {
            Ok(server) => flow.server = Some(server),
            Err(failure) => flow.failure = Some(failure),
        }
        Ok(flow)
    }

    /// Waits until the server listens.
    pub fn wait_ready(&mut self, deadline: Instant) -> Result<(), Trouble> {
        let Some(server) = &mut self.server else {
            return Ok(());
        };
        self.failure = match server.wait_ready(deadline)? {
            Event::Ready => None,
            Event::Ended => Some(ended_early(Role::Server, server)),
            Event::Deadline => Some(Failure {
                role: Role::Server,
                outcome: Outcome::Crashed,
                what: format!(
                    "did not print a line `ready` within {} s",
                    self.play.job().silence_s
                ),
            }),
        };
        Ok(())
    }

    /// Plays the flow to its end. What is under way when its client has ended gets so much time, `drain`, to arrive.
    pub fn play(mut self, running: &Running, drain: Duration) -> Result<Ended, Trouble> {
        if let Some(failure) = self.failure.take() {
            return Ok(self.end(Err(failure), running.now()));
        }
        let start = Time::from_nanos(self.play.flow().start_ns);
        pause(span(start - running.now().min(start)));
        let verdict = self.fetch(running)?;
        let at = running.now();
        let verdict = self.part(verdict, drain);
        Ok(self.end(verdict, at))
    }

    /// Starts the client, and waits for its end, or for the flow's.
    fn fetch(&mut self, running: &Running) -> Result<Result<Verdict, Failure>, Trouble> {
        let client = match self.start(Role::Client)? {
            Ok(program) => self.client.insert(program),
            Err(failure) => return Ok(Err(failure)),
        };
        let (limit, at_limit) = limit(self.play);
        let ended = client.wait_end(after(span(limit - running.now().min(limit))))?;
        let now = running.now();
        if ended == Event::Deadline {
            return Ok(Ok(Verdict::of_end(at_limit, arrived(self.play), now)));
        }
        let status = client.status();
        let error = match status.code() {
            Some(0) => None,
            Some(127) | None => return Ok(Err(ended_early(Role::Client, client))),
            Some(code) => Some(words(client).unwrap_or_else(|| format!("exit code {code}"))),
        };
        let client = Bye {
            error,
            ..Bye::default()
        };
        Ok(Ok(Verdict::of_end(End::Done, client, now)))
    }

    /// Ends what still lives: the client first, then the server, when it has had time to hear of the client's end. A server that is
    /// gone by then has failed, whatever became of the client.
    fn part(
        &mut self,
        verdict: Result<Verdict, Failure>,
        drain: Duration,
    ) -> Result<Verdict, Failure> {
        if let Some(client) = &mut self.client
            && !client.has_ended()
        {
            client.terminate(); // so that it may write its logs
            let _ = client.wait_end(after(CUT_PATIENCE));
            client.status();
        }
        pause(drain);
        let server = self.server.as_mut().expect("it was ready");
        if server.has_ended() {
            return Err(ended_early(Role::Server, server));
        }
        server.terminate();
        // One that does not end is killed.
        let _ = server.wait_end(after(END_PATIENCE));
        verdict
    }

    fn end(self, verdict: Result<Verdict, Failure>, at: Time) -> Ended {
        let remains = [self.client, self.server]
            .map(|program| program.map(|mut it| it.remains()).unwrap_or_default());
        let verdict = verdict.unwrap_or_else(|failure| failed(self.play, &failure, &remains));
        Ended {
            verdict,
            remains,
            at,
        }
    }

    fn start(&self, role: Role) -> Result<Result<Program, Failure>, Trouble> {
        let host = match role {
            Role::Client => HostName::Client,
            Role::Server => HostName::Server,
        };
        let command = &self.play.flow().variant(role).command;
        let variables = variables(self.play, role);
        match Program::start(self.topology.host(host), command, &variables) {
            Ok(program) => Ok(Ok(program)),
            Err(NoProgram::Start(error)) => Ok(Err(not_started(self.play, role, &error))),
            Err(NoProgram::Emulator(error)) => Err(error.into()),
            Err(NoProgram::System(error)) => {
                let program = command.first().map_or("", String::as_str);
                Err(format!("starting {program}: {error}").into())
            }
        }
    }
}

/// What a program is told (section 3 of the contract). What it is not told it must not have from the user's environment either.
fn variables(play: &Play, role: Role) -> Vec<(&'static str, Option<String>)> {
    let (job, flow) = (play.job(), play.flow());
    let address = format!("{SERVER}:{}", server_port(play));
    let options = flow.variant(role).options.iter();
    let options: Vec<String> = options
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let urls = flow
        .requests
        .iter()
        .map(|path| format!("https://{address}{path}"));
    let urls = urls.collect::<Vec<_>>().join(" ");
    let is_client = role == Role::Client;
    let folder = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
    vec![
        ("ROLE", Some(role.name().to_owned())),
        ("TESTCASE", Some(flow.testcase.name().to_owned())),
        ("BENTPIPE_ALPN", Some(flow.alpn.clone())),
        ("BENTPIPE_OPTIONS", Some(options.join(" "))),
        ("BENTPIPE_LISTEN", Some(address).filter(|_| !is_client)),
        ("REQUESTS", Some(urls).filter(|_| is_client)),
        ("CERTS", folder(Some(job.certs.clone()))),
        ("WWW", folder(play.www_of(role).map(Into::into))),
        ("DOWNLOADS", folder(play.downloads_of(role))),
        (
            "SSLKEYLOGFILE",
            folder(Some(play.key_log()).filter(|_| is_client)),
        ),
        ("QLOGDIR", folder(play.qlog_of(role))),
    ]
}

/// When a flow ends at the latest, and what that means.
fn limit(play: &Play) -> (Time, End) {
    let start = Time::from_nanos(play.flow().start_ns);
    match play.flow().duration_ns {
        Some(duration) => (start + Span::from_nanos(duration), End::Cut),
        None => (Time::ZERO + play.job().scenario.timeout, End::TimeLimit),
    }
}

/// What a client that was cut would report: the bytes that are there.
fn arrived(play: &Play) -> Bye {
    let report = |path: &String| RequestReport {
        path: path.clone(),
        bytes: fs::metadata(play.downloads().join(path.trim_start_matches('/')))
            .map_or(0, |file| file.len()),
        first_byte_ns: None,
        last_byte_ns: None,
    };
    let lasts = play.flow().duration_ns.is_some();
    let requests = play.flow().requests.iter().filter(|_| lasts);
    Bye {
        requests: requests.map(report).collect(),
        ..Bye::default()
    }
}

fn not_started(play: &Play, role: Role, error: &std::io::Error) -> Failure {
    let program = play.flow().variant(role).command.first();
    let program = program.map_or("an empty command", String::as_str);
    Failure {
        role,
        outcome: Outcome::Crashed,
        what: format!("cannot start {program}: {error}"),
    }
}

fn ended_early(role: Role, program: &mut Program) -> Failure {
    let status = program.status();
    let (outcome, what) = match status.code() {
        Some(127) => (
            Outcome::Unsupported,
            "does not support this: it exited with 127".to_owned(),
        ),
        _ => (Outcome::Crashed, format!("ended by itself: {status}")),
    };
    Failure {
        role,
        outcome,
        what,
    }
}

fn failed(play: &Play, failure: &Failure, remains: &[Remains; 2]) -> Verdict {
    let role = failure.role;
    let said = remains[role.index()].last_line();
    let said = said.map(|line| format!("; it said: {line}"));
    let name = &play.flow().variant(role).name;
    let what = &failure.what;
    let detail = format!("{name} as {role} {what}{}", said.unwrap_or_default());
    Verdict::of_failure(role, failure.outcome, detail)
}

/// What a client that failed said last. Timeouts have words of their own (section 4 of the contract).
fn words(client: &mut Program) -> Option<String> {
    let line = client.last_line()?;
    let timeout = ["idle timeout", "handshake timeout"];
    let timeout = timeout.into_iter().find(|words| line.contains(words));
    Some(timeout.map_or(line.clone(), str::to_owned))
}

fn span(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}
