//! The server: any number of tests, one after the other and at once.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_endpoint::driver::Port;
use bentpipe_endpoint::{Clock, EndpointError, LogFile, Role};
use bentpipe_noq_options::RememberedPaths;
use noq_proto::crypto::rustls::QuicServerConfig;
use noq_proto::{Incoming, ServerConfig};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::arguments::{ServerArguments, everywhere};
use crate::document::{self, TestContext};
use crate::engine::{Accept, Engine, Test};
use crate::protocol::options_of_alpn;
use crate::session::Session;
use crate::tls::Identity;
use crate::transport::ConnectionDefaults;
use crate::{Failure, say, table, tls};

/// Tests at once; who comes beyond is told so.
const MOST_TESTS: usize = 64;

/// Takes connections.
struct TestAcceptor {
    base: ServerConfig,
    common: ConnectionDefaults,
    running: usize,
    leaving: bool,
}

impl Accept for TestAcceptor {
    fn accept(&mut self, incoming: &Incoming, now: Duration) -> (Arc<ServerConfig>, Session) {
        let options = incoming
            .decrypt()
            .and_then(|initial| initial.alpns())
            .and_then(|protocols| {
                let mut protocols = protocols.flatten();
                protocols.find_map(|protocol| options_of_alpn(&protocol))
            });
        let options = options.unwrap_or_default();
        let (made, mut refusal) = match self.common.transport(&options) {
            Ok(made) => (made, None),
            Err(error) => {
                let plain = self.common.transport(&BTreeMap::new());
                (plain.expect("no options are fine"), Some(error.to_string()))
            }
        };
        if self.leaving {
            refusal = Some("the server is about to end".into());
        } else if self.running >= MOST_TESTS {
            refusal = Some(format!("{MOST_TESTS} tests are running"));
        }
        let (transport, report) = made;
        let mut config = self.base.clone();
        config.transport_config(Arc::new(transport));
        let clock = self.common.clock.clone();
        let session = Session::server(clock, now, report.map(Rc::new), options, refusal);
        (Arc::new(config), session)
    }

    fn log(&self) -> Option<LogFile> {
        self.common.qlog.as_ref()?.latest()
    }
}

struct ServerRun<'a> {
    arguments: &'a ServerArguments,
    clock: Clock,
    engine: Engine<TestAcceptor>,
    keylog: Option<LogFile>,
    /// Tests begun so far: each has a number.
    begun: usize,
    finished: usize,
}

pub fn run(arguments: &ServerArguments) -> Result<(), Failure> {
    let clock = Clock::start_now();
    let (keylog, qlog) = crate::logs(&arguments.output, "server")?;
    let paths = RememberedPaths::default();
    let identity = arguments
        .identity
        .as_ref()
        .map(|(certificate, key)| Identity { certificate, key });
    let tls = tls::server(identity, &clock, keylog.as_ref())?;
    let tls = QuicServerConfig::try_from(tls).map_err(EndpointError::tls)?;
    let base = ServerConfig::with_crypto(Arc::new(tls));
    let host = TestAcceptor {
        base: base.clone(),
        common: ConnectionDefaults {
            role: Role::Server,
            clock: clock.clone(),
            qlog: qlog.clone(),
            paths: paths.clone(),
            idle: arguments.output.idle,
        },
        running: 0,
        leaving: false,
    };
    let port = open(arguments)?;
    let mut run = ServerRun {
        arguments,
        engine: Engine::new(port, host, Some(Arc::new(base)), clock.clone(), paths),
        clock,
        keylog,
        begun: 0,
        finished: 0,
    };
    run.announce()?;
    run.serve()?;
    drop(run);
    if let Some(qlog) = &qlog {
        qlog.complete()?;
    }
    Ok(())
}

fn open(arguments: &ServerArguments) -> Result<Port, Failure> {
    let open =
        |address: IpAddr| Port::open(SocketAddr::new(address, arguments.port), &[SIGINT, SIGTERM]);
    // A machine may have no IPv6; the line that says where the server listens shows it.
    let [six, four] = everywhere();
    let port = match arguments.address {
        Some(address) => open(address),
        None => open(six).or_else(|error| {
            if is_in_use(&error) {
                Err(error)
            } else {
                open(four)
            }
        }),
    };
    port.map_err(|error| {
        if is_in_use(&error) {
            let what = format!("UDP port {} is in use", arguments.port);
            return Failure::new(what, "is a server running already? --port takes another");
        }
        let address = arguments
            .address
            .map_or("any".to_owned(), |it| it.to_string());
        let hint = "ADDR must be an address of this machine";
        Failure::new(format!("{address} port {}: {error}", arguments.port), hint)
    })
}

fn is_in_use(error: &EndpointError) -> bool {
    matches!(error, EndpointError::Io { source,
        .. } if source.kind() == std::io::ErrorKind::AddrInUse)
}

impl ServerRun<'_> {
    fn announce(&self) -> Result<(), Failure> {
        let local = self.engine.port().local_address()?;
        let certificate = match &self.arguments.identity {
            Some((path, _)) => format!("certificate {}", path.display()),
            None => "a certificate made for this run".into(),
        };
        // Not in the way of JSON on standard output.
        let text = format!("listening on UDP {local}, with {certificate}");
        if self.arguments.output.json {
            eprintln!("{text}");
        } else {
            say(&text);
        }
        Ok(())
    }

    fn serve(&mut self) -> Result<(), Failure> {
        loop {
            let awake = self.engine.turn(None)?;
            if awake.signalled {
                self.engine.accept().leaving = true;
                self.engine.interrupt();
            }
            self.follow()?;
            if self.arguments.once && self.finished > 0 {
                self.engine.accept().leaving = true;
            }
            // Closed connections answer until their peers know.
            if self.engine.accept().leaving && self.engine.tests().next().is_none() {
                return Ok(());
            }
        }
    }

    /// Shows what has become of the tests.
    fn follow(&mut self) -> Result<(), Failure> {
        let json = self.arguments.output.json;
        let local = self.engine.port().local_address()?;
        let now = self.clock.elapsed();
        let unix = self.clock.unix();
        let mut running = 0;
        for test in self.engine.tests() {
            if test.concluded {
                continue;
            }
            running += 1;
            if test.session.request.is_some() && test.number.is_none() {
                self.begun += 1;
                test.number = Some(self.begun);
                if !json {
                    begin(test, self.begun);
                }
            }
            if !json {
                let whole = test.session.whole_rows();
                show(test, whole);
            }
            if test.session.result.is_some() {
                test.concluded = true;
                running -= 1;
                let begun = unix.saturating_sub(now.saturating_sub(test.session.started()));
                conclude(test, local, begun.as_secs_f64(), json)?;
                self.finished += usize::from(test.number.is_some());
            }
        }
        self.engine.accept().running = running;
        if let Some(keylog) = self.keylog.as_ref().filter(|_| running == 0) {
            keylog.complete()?;
        }
        Ok(())
    }
}

fn begin(test: &Test, number: usize) {
    let session = &test.session;
    let remote = plain(test.remote);
    let what = session.request.as_ref().map(table::intention);
    say(&format!(
        "[{number}] {remote}: {}",
        what.unwrap_or_default()
    ));
    let margin = " ".repeat(format!("[{number}] ").len());
    for line in table::HEADING {
        say(&format!("{margin}{line}"));
    }
}

fn show(test: &mut Test, until: usize) {
    let (Some(number), Some(request)) = (test.number, &test.session.request) else {
        return;
    };
    for row in test.session.rows.iter().take(until).skip(test.shown) {
        say(&format!("[{number}] {}", table::row(row, request)));
    }
    test.shown = test.shown.max(until);
}

fn conclude(test: &mut Test, local: SocketAddr, begun: f64, json: bool) -> Result<(), Failure> {
    let why = test.session.result.clone().and_then(Result::err);
    if let Some(log) = &test.log {
        log.complete()?;
    }
    if json && (test.number.is_some() || why.is_some()) {
        let context = TestContext {
            role: "server",
            local: local.to_string(),
            remote: plain(test.remote).to_string(),
            started_unix_s: begun,
            certificate: None,
            session_resumed: None,
            error: why.as_deref(),
        };
        say(&document::of(&test.session, &context).to_string());
        return Ok(());
    }
    if json {
        return Ok(());
    }
    let count = test.session.rows.len();
    show(test, count);
    let prefix = match test.number {
        Some(number) => format!("[{number}] "),
        None => format!("{}: ", plain(test.remote)),
    };
    let summary = table::summary(&test.session, ["server", "client"]);
    for line in summary.lines() {
        say(&format!("{prefix}{line}"));
    }
    if let Some(why) = why {
        say(&format!("{prefix}{why}"));
    }
    Ok(())
}

/// As people write it: a socket for both families sees IPv4 addresses as IPv6 ones.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
