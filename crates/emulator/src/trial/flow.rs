//! A flow in real time: its server is started, then its client, and when the client has ended, the server is told to.

use std::error::Error;
use std::fs;
use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::Duration;

use bentpipe_emulator::{HostName, Running, Topology};
use bentpipe_endpoint::contract::{Bye, RequestReport};
use bentpipe_trial::{End, Outcome, Play, Remains, Role, Verdict};
use bentpipe_units::{Span, Time};

use super::program::{Event, NoProgram, Program, after};

/// How long a server may take until it listens.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How long a client may take to end when the flow's time is over.
const CUT_PATIENCE: Duration = Duration::from_secs(1);
/// How long a server may take to end when it is told to.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// The address of the server's host, the same for all flows.
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The port of the first flow's server; further flows have those behind it.
pub const FIRST_PORT: u16 = 443;

/// Where flows are played.
pub struct Stage<'a> {
    pub topology: &'a Topology,
    pub running: &'a Running,
    /// What a server gets, when its client has ended, to hear of it.
    pub patience: Duration,
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

impl Stage<'_> {
    /// Plays one flow to its end.
    pub fn play(&self, play: &Play) -> Result<Ended, Box<dyn Error + Send + Sync>> {
        let start = Time::from_nanos(play.flow().start_ns);
        let mut programs = [None, None];
        let verdict = self.serve(play, &mut programs[1])?;
        let verdict = match verdict {
            Some(failure) => Err(failure),
            None => {
                sleep(span(start - self.running.now().min(start)));
                self.fetch(play, &mut programs)?
            }
        };
        let at = self.running.now();
        self.part(&mut programs);
        let remains =
            programs.map(|program| program.map(|mut it| it.remains()).unwrap_or_default());
        let verdict = verdict.unwrap_or_else(|failure| failed(play, &failure, &remains));
        Ok(Ended {
            verdict,
            remains,
            at,
        })
    }

    /// Starts the server, and waits until it listens.
    fn serve(
        &self,
        play: &Play,
        place: &mut Option<Program>,
    ) -> Result<Option<Failure>, Box<dyn Error + Send + Sync>> {
        let server = match self.start(play, Role::Server) {
            Ok(program) => place.insert(program),
            Err(NoProgram::Emulator(error)) => return Err(error.into()),
            Err(NoProgram::Start(error)) => {
                return Ok(Some(not_started(play, Role::Server, &error)));
            }
        };
        Ok(match server.wait_ready(after(START_PATIENCE))? {
            Event::Ready => None,
            Event::Ended => Some(ended_early(Role::Server, server)),
            Event::Deadline => Some(Failure {
                role: Role::Server,
                outcome: Outcome::Crashed,
                what: format!(
                    "did not print a line `ready` within {} s",
                    START_PATIENCE.as_secs()
                ),
            }),
        })
    }

    /// Starts the client, and waits for its end, or for the flow's.
    fn fetch(
        &self,
        play: &Play,
        programs: &mut [Option<Program>; 2],
    ) -> Result<Result<Verdict, Failure>, Box<dyn Error + Send + Sync>> {
        let [client, server] = programs;
        let client = match self.start(play, Role::Client) {
            Ok(program) => client.insert(program),
            Err(NoProgram::Emulator(error)) => return Err(error.into()),
            Err(NoProgram::Start(error)) => {
                return Ok(Err(not_started(play, Role::Client, &error)));
            }
        };
        let (limit, at_limit) = limit(play);
        let ended = client.wait_end(after(span(limit - self.running.now().min(limit))))?;
        if server.as_ref().is_some_and(Program::has_ended) {
            let server = server.as_mut().expect("it was there a line ago");
            return Ok(Err(ended_early(Role::Server, server)));
        }
        let now = self.running.now();
        if ended == Event::Deadline {
            return Ok(Ok(Verdict::of_end(at_limit, arrived(play), now)));
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

    /// Ends what still lives: the client first, then the server, when it has had time to hear of the client's end.
    fn part(&self, programs: &mut [Option<Program>; 2]) {
        let [client, server] = programs;
        if let Some(client) = client
            && !client.has_ended()
        {
            client.terminate(); // so that it may write its logs
            let _ = client.wait_end(after(CUT_PATIENCE));
            client.status();
        }
        sleep(self.patience);
        if let Some(server) = server {
            server.terminate();
            // One that does not end is killed.
            let _ = server.wait_end(after(END_PATIENCE));
        }
    }

    fn start(&self, play: &Play, role: Role) -> Result<Program, NoProgram> {
        let host = match role {
            Role::Client => HostName::Client,
            Role::Server => HostName::Server,
        };
        let variables = variables(play, role);
        let command = &play.flow().variant(role).command;
        Program::start(self.topology.host(host), command, &variables)
    }
}

/// What a program is told (section 3 of the contract).
fn variables(play: &Play, role: Role) -> Vec<(&'static str, String)> {
    let (job, flow) = (play.job(), play.flow());
    let address = format!("{SERVER}:{}", server_port(play));
    let options = flow.variant(role).options.iter();
    let options: Vec<String> = options
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut variables = vec![
        ("ROLE", role.name().to_owned()),
        ("TESTCASE", flow.testcase.name().to_owned()),
        ("BENTPIPE_ALPN", flow.alpn.clone()),
        ("BENTPIPE_OPTIONS", options.join(" ")),
        ("CERTS", job.certs.display().to_string()),
    ];
    match role {
        Role::Server => variables.push(("BENTPIPE_LISTEN", address)),
        Role::Client => {
            let urls = flow
                .requests
                .iter()
                .map(|path| format!("https://{address}{path}"));
            variables.push(("REQUESTS", urls.collect::<Vec<_>>().join(" ")));
            variables.push(("SSLKEYLOGFILE", play.key_log().display().to_string()));
        }
    }
    let folders = [
        ("WWW", play.www_of(role).map(Into::into)),
        ("DOWNLOADS", play.downloads_of(role)),
        ("QLOGDIR", play.qlog_of(role)),
    ];
    let folders = folders.into_iter();
    variables.extend(folders.filter_map(|(name, path)| Some((name, path?.display().to_string()))));
    variables
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
