//! The client: one test, or two of which the second resumes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_endpoint::driver::Port;
use bentpipe_endpoint::{Clock, LogFile, LogFolder, Resume, Role};
use bentpipe_noq_adapter::Client;
use bentpipe_noq_options::{RememberedPaths, Report};
use noq_proto::ConnectionHandle;
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::arguments::ClientArguments;
use crate::document::{self, TestContext};
use crate::engine::{Engine, NoAcceptor};
use crate::protocol::{Request, options_to_alpn};
use crate::session::Session;
use crate::tls::Verifier;
use crate::transport::{ConnectionDefaults, may_resume};
use crate::{Failure, INTERRUPTED, say, table, tls};

/// A client and what it needs for its connections.
struct ClientRun {
    arguments: ClientArguments,
    remote: SocketAddr,
    clock: Clock,
    engine: Engine<NoAcceptor>,
    client: Client,
    verifier: Arc<Verifier>,
    report: Option<Rc<Report>>,
    keylog: Option<LogFile>,
    qlog: Option<LogFolder>,
    interrupted: bool,
}

/// A test that has come to its end.
struct FinishedTest {
    document: Value,
    error: Option<Failure>,
}

pub fn run(arguments: ClientArguments) -> Result<ExitCode, Failure> {
    let mut run = ClientRun::new(arguments)?;
    if run.arguments.zero_rtt && run.arguments.resume.is_none() {
        run.fetch_ticket()?;
    }
    let resumes = run.arguments.resume.is_some() || run.arguments.zero_rtt;
    let first = if run.arguments.resume.is_some() {
        run.say("First connection: cold");
        let done = run.test(Resume::Nothing)?;
        if done.error.is_some() || run.interrupted {
            return run.finish(done, None);
        }
        run.say("\nSecond connection: resumed");
        Some(done.document)
    } else {
        None
    };
    let resume = match (resumes, run.arguments.zero_rtt) {
        (false, _) => Resume::Nothing,
        (true, false) => Resume::Session,
        (true, true) => Resume::EarlyData,
    };
    let done = run.test(resume)?;
    run.finish(done, first)
}

impl ClientRun {
    fn new(mut arguments: ClientArguments) -> Result<Self, Failure> {
        let remote = resolve(&arguments.host, arguments.port)?;
        let clock = Clock::start_now();
        let (keylog, qlog) = crate::logs(&arguments.output, "client")?;
        let paths = RememberedPaths::default();
        let common = ConnectionDefaults {
            role: Role::Client,
            clock: clock.clone(),
            qlog: qlog.clone(),
            paths: paths.clone(),
            idle: arguments.output.idle,
        };
        let options = &mut arguments.request.options;
        if let Some(word) = arguments.resume.as_ref().filter(|_| may_resume(options)) {
            options.insert("resume".into(), word.clone());
        }
        let protocol = options_to_alpn(options)?;
        let mut local = options.clone();
        local.extend(arguments.memory.clone().map(|file| ("memory".into(), file)));
        let (transport, report) = common.transport(&local)?;
        let verifier = Arc::new(Verifier::new(arguments.authority.as_deref())?);
        let tls = tls::client(verifier.clone(), protocol, &clock, keylog.as_ref())?;
        let any: IpAddr = if remote.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let port = Port::open(SocketAddr::new(any, 0), &[SIGINT, SIGTERM])?;
        port.connect(remote)?;
        Ok(Self {
            engine: Engine::new(port, NoAcceptor, None, clock.clone(), paths),
            client: Client::new(tls, Arc::new(transport)),
            report: report.map(Rc::new),
            arguments,
            remote,
            clock,
            verifier,
            keylog,
            qlog,
            interrupted: false,
        })
    }

    fn say(&self, text: &str) {
        if !self.arguments.output.json {
            say(text);
        }
    }

    fn connect(&mut self, session: Session, resume: Resume) -> Result<ConnectionHandle, Failure> {
        let config = self.client.config(resume)?;
        let name = self.arguments.server_name.as_ref();
        let name = name.unwrap_or(&self.arguments.host).clone();
        let begun = self.engine.connect(config, self.remote, &name, session);
        begun.map_err(|error| {
            let hint = "--server-name NAME gives the name that is asked for";
            Failure::new(error.to_string(), hint)
        })
    }

    /// A connection whose only purpose is its session ticket.
    fn fetch_ticket(&mut self) -> Result<(), Failure> {
        let now = self.engine.tick();
        let session = Session::greeting(self.clock.clone(), now);
        let handle = self.connect(session, Resume::Nothing)?;
        let deadline = now + self.arguments.connect;
        let mut ticket = false;
        loop {
            let awake = self.engine.turn(Some(deadline))?;
            ticket |= self.client.tickets.any_new();
            let now = self.engine.tick();
            let refused = self.engine.port().was_refused();
            let test = self.engine.test(handle).expect("it was not concluded");
            if ticket && test.session.connected.is_some() {
                test.session.leave(&mut test.connection, now);
                break;
            }
            if let Some(Err(why)) = &test.session.result {
                let why = why.clone();
                return Err(self.unreachable(&why));
            }
            if refused || now >= deadline {
                return Err(self.unreachable("no answer to the handshake"));
            }
            if awake.signalled {
                let failure = Failure::new("interrupted", "");
                return Err(Failure {
                    code: INTERRUPTED,
                    ..failure
                });
            }
        }
        self.engine.turn(Some(Duration::ZERO))?;
        self.verifier.was_shown();
        Ok(())
    }

    fn unreachable(&self, why: &str) -> Failure {
        let remote = self.remote;
        let why = if self.engine.port().was_refused() {
            "nobody listens there (ICMP port unreachable)"
        } else {
            why
        };
        let hint = format!(
            "start `bentpipe perf server` at the other side, and let UDP port {} through",
            remote.port()
        );
        Failure::new(format!("{remote}: {why}"), hint)
    }

    /// One test, from its handshake to its summary.
    fn test(&mut self, resume: Resume) -> Result<FinishedTest, Failure> {
        let now = self.engine.tick();
        let started_unix_s = self.clock.unix().as_secs_f64();
        let (clock, report) = (self.clock.clone(), self.report.clone());
        let session = Session::client(self.arguments.request.clone(), clock, now, report);
        let handle = self.connect(session, resume)?;
        let deadline = now + self.arguments.connect;
        let mut display = Display::default();
        loop {
            let awake = self
                .engine
                .turn(Some(deadline).filter(|_| !display.connected))?;
            if awake.signalled {
                self.interrupted = true;
                self.engine.interrupt();
            }
            let now = self.engine.tick();
            let refused = self.engine.port().was_refused();
            let json = self.arguments.output.json;
            let test = self.engine.test(handle).expect("it was not concluded");
            if test.session.connected.is_none() && (refused || now >= deadline) {
                return Err(self.unreachable("no answer to the handshake"));
            }
            display.follow(&test.session, resume, json);
            if test.session.result.is_some() {
                break;
            }
        }
        self.conclude(handle, started_unix_s, &display)
    }

    fn conclude(
        &mut self,
        handle: ConnectionHandle,
        started_unix_s: f64,
        display: &Display,
    ) -> Result<FinishedTest, Failure> {
        let local = self.engine.port().local_address()?;
        let certificate = if self.arguments.authority.is_some() {
            "verified"
        } else {
            "not_verified"
        };
        let resumed = !self.verifier.was_shown();
        let test = self.engine.test(handle).expect("it was not concluded");
        test.concluded = true;
        let session = &test.session;
        let why = session.result.clone().and_then(Result::err);
        let context = TestContext {
            role: "client",
            local: local.to_string(),
            remote: self.remote.to_string(),
            started_unix_s,
            certificate: Some(certificate),
            session_resumed: Some(resumed),
            error: why.as_deref(),
        };
        let document = document::of(session, &context);
        if !self.arguments.output.json {
            display.rest(session);
            let summary = table::summary(session, ["client", "server"]);
            if !summary.is_empty() {
                say(&format!("\n{summary}"));
            }
            let yes = if resumed { "yes" } else { "no" };
            let zero = session.zero_rtt.name().replace('_', " ");
            say(&format!("session   resumed: {yes}, 0-RTT: {zero}"));
            if resumed && self.arguments.resume.is_some() {
                say(careful_resume(session));
            }
        }
        let connected = session.connected.is_some();
        let error = why.map(|why| {
            if connected {
                Failure::new(why, "")
            } else {
                self.unreachable(&why)
            }
        });
        Ok(FinishedTest { document, error })
    }

    /// Writes what is still to be written; the exit code.
    fn finish(self, done: FinishedTest, previous: Option<Value>) -> Result<ExitCode, Failure> {
        if self.arguments.output.json {
            let mut document = done.document;
            document["previous"] = previous.unwrap_or_default();
            say(&serde_json::to_string_pretty(&document).expect("it is JSON"));
        }
        // What the library still holds back, it writes when it is dropped.
        drop(self.engine);
        if let Some(qlog) = &self.qlog {
            qlog.complete()?;
        }
        if let Some(keylog) = &self.keylog {
            keylog.complete()?;
        }
        match done.error {
            _ if self.interrupted => Ok(ExitCode::from(INTERRUPTED)),
            Some(failure) => Err(failure),
            None => Ok(ExitCode::SUCCESS),
        }
    }
}

/// Whether there was anything to resume on the path.
fn careful_resume(session: &Session) -> &'static str {
    let can = |request: &Request| may_resume(&request.options);
    if !session.request.as_ref().is_some_and(can) {
        return "path      congestion control began anew: Careful Resume needs --ss or cc=bentpipe";
    }
    if session
        .sent()
        .is_some_and(|sent| sent.statistics.is_empty())
    {
        return "path      nothing was remembered that was worth it (docs/design/careful-resume.md)";
    }
    "path      resume_ended_as, if it is there, says how far Careful Resume came"
}

/// The progress shown so far.
#[derive(Default)]
struct Display {
    connected: bool,
    first_byte: bool,
    rows: usize,
}

impl Display {
    fn follow(&mut self, session: &Session, resume: Resume, json: bool) {
        let Some(handshake) = session.handshake() else {
            return;
        };
        let before = (self.connected, self.first_byte);
        self.connected = true;
        if json {
            return;
        }
        if !before.0 {
            if let Some(request) = &session.request {
                say(&table::intention(request));
            }
            let how = match resume {
                Resume::Nothing => "",
                Resume::Session => " with a session ticket",
                Resume::EarlyData => " with a session ticket and early data",
            };
            let handshake = 1e3 * handshake.as_secs_f64();
            say(&format!("connected in {handshake:.2} ms{how}"));
        }
        if let Some(time) = session.time_to_first_byte().filter(|_| !before.1) {
            self.first_byte = true;
            let time = 1e3 * time.as_secs_f64();
            say(&format!("first byte from the server after {time:.2} ms\n"));
            table::HEADING.into_iter().for_each(say);
        }
        if self.first_byte {
            let whole = session.whole_rows();
            self.print(session, whole);
        }
    }

    fn print(&mut self, session: &Session, until: usize) {
        let Some(request) = &session.request else {
            return;
        };
        for row in session.rows.iter().take(until).skip(self.rows) {
            say(&table::row(row, request));
        }
        self.rows = self.rows.max(until);
    }

    /// Those of which only one side is known.
    fn rest(&self, session: &Session) {
        let mut rest = Self { ..*self };
        rest.print(session, session.rows.len());
    }
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, Failure> {
    let hint = "write a name or an address, and the port with --port";
    let found = (host, port).to_socket_addrs();
    let mut found = found.map_err(|error| Failure::new(format!("{host}: {error}"), hint))?;
    found
        .next()
        .ok_or_else(|| Failure::new(format!("{host}: no address"), hint))
}
