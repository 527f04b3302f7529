//! One trial from job to result: start both programs, greet them, run them, ask for their last words, compare the files.

use std::error::Error;
use std::fs;
use std::io::{Write, read_to_string, stdin, stdout};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bentpipe_endpoint::contract::{self, Bye, Hello, Ready};
use bentpipe_link::{Direction, Path as LinkPath};
use bentpipe_trace::KeyLog;
use bentpipe_units::{Span, Time};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::child::{Child, ChildError, Remains};
use crate::coordinator::{Coordinator, Side};
use crate::job::{self, EPOCH_UNIX_S, Job, Outcome, Role};
use crate::measure::{Finished, result};
use crate::packet_log::PacketLog;
use crate::proof::Claim;
use crate::trace::Trace;
use crate::verdict::Verdict;
use crate::verify::verify;
use crate::wire::Wire;

// Addresses for documentation (RFC 5737): they are in traces, and nobody's.
const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 50_000);
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 443);

/// Reads a job from standard input, runs it and prints its result.
pub fn from_standard_input() -> Result<(), Box<dyn Error>> {
    let text = read_to_string(stdin())?;
    let job: Job = serde_json::from_str(&text).map_err(|error| format!("the job: {error}"))?;
    let result = Trial::new(&job)?.run()?;
    let mut line = serde_json::to_vec(&result)?;
    line.push(b'\n');
    stdout().write_all(&line)?;
    Ok(())
}

struct Trial<'a> {
    job: &'a Job,
    /// Of all files.
    size_bytes: u64,
    /// Of those that are measured.
    measured_bytes: u64,
    scratch: TempDir,
}

impl<'a> Trial<'a> {
    fn new(job: &'a Job) -> Result<Self, Box<dyn Error>> {
        let one_way = |direction| job.scenario.min_one_way(direction);
        if one_way(Direction::Forward).min(one_way(Direction::Return)) == Span::ZERO {
            let name = &job.scenario.name;
            return Err(format!(
                "scenario {name}: virtual time needs a delay above 0 in both directions"
            )
            .into());
        }
        if job.testcase.measured(&job.requests).is_empty() {
            let (testcase, count) = (job.testcase.name(), job.requests.len());
            return Err(format!("{testcase}: {count} requests are too few").into());
        }
        let size_bytes = size_of(job, &job.requests)?;
        let measured_bytes = size_of(job, job.testcase.measured(&job.requests))?;
        let scratch = tempfile::Builder::new().prefix("bentpipe-").tempdir()?;
        fs::create_dir(scratch.path().join("downloads"))?;
        if job.qlog {
            for role in [Role::Client, Role::Server] {
                fs::create_dir_all(job.folder.join("qlog").join(role.name()))?;
            }
        }
        Ok(Self {
            job,
            size_bytes,
            measured_bytes,
            scratch,
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "wall_s is a column of the record, and decides nothing"
    )]
    fn run(self) -> Result<job::TrialResult, Box<dyn Error>> {
        let start = Instant::now();
        let mut finished = self.play();
        self.check_files(&mut finished)?;
        self.decode(&mut finished);
        self.prove(&mut finished);
        self.leave_files(&finished)?;
        Ok(result(self.job, &finished, start.elapsed()))
    }

    /// From the start of both programs to the end of both.
    fn play(&self) -> Finished {
        let silence = Duration::from_secs(self.job.silence_s);
        let start = |role| Child::start(role, &self.job.variant(role).command, silence);
        let (mut client, mut server) = match (start(Role::Client), start(Role::Server)) {
            (Ok(client), Ok(server)) => (client, server),
            (Err(error), _) | (_, Err(error)) => {
                return self.finished(Err(error), None, Default::default());
            }
        };
        let ready = match self.greet(&mut client, &mut server) {
            Ok(ready) => ready,
            Err(error) => {
                return self.finished(Err(error), None, [client.remains(), server.remains()]);
            }
        };
        let path = |direction| LinkPath::new(&self.job.scenario, direction, self.job.seed.0);
        let mut coordinator = Coordinator::new(
            [Side::new(client, &ready[0]), Side::new(server, &ready[1])],
            [path(Direction::Forward), path(Direction::Return)],
            PacketLog::new(),
        );
        let result = self.converse(&mut coordinator);
        let remains =
            [Role::Client, Role::Server].map(|role| coordinator.side(role).child.remains());
        self.finished(result, Some((coordinator, ready)), remains)
    }

    fn finished(
        &self,
        result: Result<Verdict, ChildError>,
        met: Option<(Coordinator, [Ready; 2])>,
        remains: [Remains; 2],
    ) -> Finished {
        let verdict = result.unwrap_or_else(|error| {
            let role = error.role();
            Verdict::of_failure(&self.job.variant(role).name, &error, &remains[role.index()])
        });
        let (coordinator, ready) = met.unzip();
        Finished {
            verdict,
            measured_bytes: self.measured_bytes,
            coordinator,
            remains,
            ready,
            wire: Vec::new(),
            has_secrets: false,
        }
    }

    /// HELLO to both, then READY from both, so that they start up side by side.
    fn greet(&self, client: &mut Child, server: &mut Child) -> Result<[Ready; 2], ChildError> {
        for (role, child) in [(Role::Client, &mut *client), (Role::Server, &mut *server)] {
            let hello = serde_json::to_vec(&self.hello(role)).expect("HELLO is plain data");
            child.send(contract::encode_frame(contract::HELLO, &hello))?;
        }
        let ready = [
            client.receive(contract::READY),
            server.receive(contract::READY),
        ];
        let [client_ready, server_ready] = ready;
        Ok([
            parse(&client_ready?, client, "READY")?,
            parse(&server_ready?, server, "READY")?,
        ])
    }

    fn hello(&self, role: Role) -> Hello {
        let job = self.job;
        let scratch = self.scratch.path();
        let (local, remote) = match role {
            Role::Client => (CLIENT, SERVER),
            Role::Server => (SERVER, CLIENT),
        };
        let only = |whose: Role, path: PathBuf| (role == whose).then_some(path);
        Hello {
            contract: contract::CONTRACT,
            role: role.name().to_owned(),
            testcase: job.testcase.name().to_owned(),
            requests: match role {
                Role::Client => job
                    .requests
                    .iter()
                    .map(|path| format!("https://server:443{path}"))
                    .collect(),
                Role::Server => Vec::new(),
            },
            options: job.variant(role).options.clone(),
            seed: format!("{:016x}", seed_of(job.seed.0, role)),
            epoch_unix_s: EPOCH_UNIX_S,
            local: local.to_string(),
            remote: remote.to_string(),
            www: only(job.testcase.sender(), job.www.clone()),
            downloads: only(job.testcase.receiver(), scratch.join("downloads")),
            certs: job.certs.clone(),
            keylog: only(Role::Client, key_log(scratch, Role::Client)),
            qlog: job.qlog.then(|| job.folder.join("qlog").join(role.name())),
        }
    }

    fn converse(&self, coordinator: &mut Coordinator) -> Result<Verdict, ChildError> {
        let end = coordinator.run(Time::ZERO + self.job.scenario.timeout)?;
        let [client, server] = coordinator.finish()?;
        let client: Bye = parse(&client, &coordinator.client.child, "BYE")?;
        let server: Bye = parse(&server, &coordinator.server.child, "BYE")?;
        coordinator.client.child.leave()?;
        coordinator.server.child.leave()?;
        if client.requests.len() != self.job.requests.len() {
            let what = format!(
                "BYE reports {} requests of {}",
                client.requests.len(),
                self.job.requests.len()
            );
            return Err(coordinator.client.child.rubbish(what));
        }
        let mut verdict = Verdict::of_end(end, client, coordinator.now);
        verdict.hear_server(&server);
        Ok(verdict)
    }

    /// What arrived decides: a file that is whole and right makes a trial `ok`, whatever the programs think of it.
    fn check_files(&self, finished: &mut Finished) -> Result<(), Box<dyn Error>> {
        let verdict = &mut finished.verdict;
        if matches!(verdict.outcome, Outcome::Crashed | Outcome::Unsupported) {
            return Ok(());
        }
        let downloads = self.scratch.path().join("downloads");
        let wrong = verify(&self.job.requests, &self.job.www, &downloads)?;
        verdict.take_files_into_account(wrong);
        if verdict.outcome == Outcome::Ok && self.job.trace && !self.has_secrets() {
            verdict.outcome = Outcome::NoSecrets;
            "client wrote no TLS secrets, so the trace cannot be decrypted"
                .clone_into(&mut verdict.detail);
        }
        Ok(())
    }

    /// The TLS secrets that the client has written; empty if there are none.
    fn secrets(&self) -> String {
        fs::read_to_string(key_log(self.scratch.path(), Role::Client)).unwrap_or_default()
    }

    /// Whether the streams of each connection can be read.
    fn has_secrets(&self) -> bool {
        let mut secrets = KeyLog::default();
        secrets.add(self.secrets().as_bytes());
        let connections = 1 + usize::from(self.job.testcase.has_two_connections());
        secrets.readable_connections() >= connections
    }

    /// Looks at what was on the wire, as far as the client has told how to read it.
    fn decode(&self, finished: &mut Finished) {
        let Some(coordinator) = finished.coordinator.as_ref() else {
            return;
        };
        let key_log = self.secrets();
        let wire = Wire {
            packets: coordinator.log.packets(),
            key_log: key_log.as_bytes(),
            client: CLIENT,
            server: SERVER,
        };
        finished.wire = wire.connections();
        finished.has_secrets = self.has_secrets();
    }

    /// Where every file arrived, the wire has to show what the test case asks for.
    fn prove(&self, finished: &mut Finished) {
        if finished.verdict.outcome != Outcome::Ok {
            return;
        }
        let claim = Claim {
            testcase: self.job.testcase,
            requests: self.job.requests.len(),
            size_bytes: self.size_bytes,
            round_trip: self.job.scenario.rtt(),
        };
        if let Err(flaw) = claim.judge(&finished.wire) {
            finished.verdict.take_wire_into_account(flaw);
        }
    }

    /// The trace, and what is needed to find out why a program failed.
    fn leave_files(&self, finished: &Finished) -> Result<(), Box<dyn Error>> {
        let folder = &self.job.folder;
        if let (true, Some(coordinator)) = (self.job.trace, &finished.coordinator) {
            fs::create_dir_all(folder)?;
            let packets = coordinator.log.packets();
            let key_log = self.secrets();
            let trace = Trace {
                packets,
                key_log: key_log.as_bytes(),
                client: CLIENT,
                server: SERVER,
            };
            trace.write(&folder.join("trace.pcapng"))?;
        }
        if matches!(finished.verdict.outcome, Outcome::Ok | Outcome::Unsupported) {
            return Ok(());
        }
        for (role, remains) in [Role::Client, Role::Server]
            .into_iter()
            .zip(&finished.remains)
        {
            if !remains.log.is_empty() {
                fs::create_dir_all(folder)?;
                fs::write(folder.join(format!("{role}.log")), &remains.log)?;
            }
            if finished.verdict.culprit == Some(role) {
                fs::create_dir_all(folder)?;
                fs::write(
                    folder.join(format!("{role}.frames")),
                    remains.frames.concat(),
                )?;
            }
        }
        Ok(())
    }
}

/// Bytes of the files that are asked for.
fn size_of(job: &Job, requests: &[String]) -> Result<u64, String> {
    let mut sum = 0;
    for request in requests {
        let file = job.www.join(request.trim_start_matches('/'));
        let metadata = fs::metadata(&file);
        sum += metadata
            .map_err(|error| format!("{}: {error}", file.display()))?
            .len();
    }
    Ok(sum)
}

/// The seed of one side: each endpoint draws from a stream of its own.
fn seed_of(trial: u64, role: Role) -> u64 {
    let digest = Sha256::new()
        .chain_update(trial.to_be_bytes())
        .chain_update(role.name())
        .finalize();
    u64::from_be_bytes(*digest.first_chunk().expect("SHA-256 has 32 bytes"))
}

fn key_log(scratch: &Path, role: Role) -> PathBuf {
    scratch.join(format!("{role}.keys"))
}

fn parse<T: serde::de::DeserializeOwned>(
    body: &[u8],
    child: &Child,
    frame: &str,
) -> Result<T, ChildError> {
    serde_json::from_slice(body).map_err(|error| child.rubbish(format!("{frame}: {error}")))
}
