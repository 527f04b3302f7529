//! What the programs of one flow are told, and what is made of what they leave.

use std::error::Error;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bentpipe_endpoint::contract::{self, Bye, Hello, Ready, RequestReport};
use bentpipe_trace::KeyLog;
use bentpipe_units::{Span, Time};
use sha2::{Digest, Sha256};

use crate::child::{Child, ChildError, Remains};
use crate::flow::{End, Flow, Limits, Side};
use crate::job::{self, EPOCH_UNIX_S, Job, Outcome, Role};
use crate::measure::Played;
use crate::packet_log::Packet;
use crate::proof::Claim;
use crate::verdict::Verdict;
use crate::verify::verify;
use crate::wire::Wire;
use crate::www;

/// A flow of a job. The first is the one that is measured.
pub struct Play<'a> {
    number: usize,
    job: &'a Job,
    flow: &'a job::Flow,
    /// Of all files.
    size_bytes: u64,
    /// Of those that are measured.
    measured_bytes: u64,
    www: PathBuf,
    /// For what it leaves, until that is looked at.
    scratch: PathBuf,
}

impl<'a> Play<'a> {
    /// The flow with that number, and its place within `scratch`.
    pub fn new(job: &'a Job, number: usize, scratch: &Path) -> Result<Self, Box<dyn Error>> {
        let flow = &job.flows[number];
        if flow.testcase.measured(&flow.requests).is_empty() {
            let (testcase, count) = (flow.testcase.name(), flow.requests.len());
            return Err(format!("{testcase}: {count} requests are too few").into());
        }
        let scratch = scratch.join(number.to_string());
        fs::create_dir_all(scratch.join("downloads"))?;
        let mut play = Self {
            number,
            job,
            flow,
            size_bytes: 0,
            measured_bytes: 0,
            www: job.www.clone(),
            scratch,
        };
        if let Some(duration) = flow.duration_ns {
            play.www = play.scratch.join("www");
            www::make_endless(job, flow, Span::from_nanos(duration), &play.www)?;
        } else {
            play.size_bytes = www::size_of(&play.www, &flow.requests)?;
            let measured = flow.testcase.measured(&flow.requests);
            play.measured_bytes = www::size_of(&play.www, measured)?;
        }
        Ok(play)
    }

    /// Addresses of the client and the server: for documentation (RFC 5737), so they are in traces, and nobody's.
    pub fn addresses(&self) -> [SocketAddrV4; 2] {
        let host = u8::try_from(self.number + 1).expect("a job has no more flows than that");
        [
            SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, host), 50_000),
            SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, host), 443),
        ]
    }

    /// What its files are called: nothing is put before those of the first flow.
    fn prefix(&self) -> String {
        match self.number {
            0 => String::new(),
            number => format!("flow{}-", number + 1),
        }
    }

    /// Starts both programs.
    pub fn start(&self) -> Result<[Child; 2], ChildError> {
        let silence = Duration::from_secs(self.job.silence_s);
        let start = |role| Child::start(role, &self.flow.variant(role).command, silence);
        let (client, server) = (start(Role::Client), start(Role::Server));
        Ok([client?, server?])
    }

    /// HELLO to both, so that they start up side by side.
    pub fn greet(&self, children: &mut [Child; 2]) -> Result<(), ChildError> {
        for (role, child) in [Role::Client, Role::Server].into_iter().zip(children) {
            let hello = serde_json::to_vec(&self.hello(role)).expect("HELLO is plain data");
            child.send(contract::encode_frame(contract::HELLO, &hello))?;
        }
        Ok(())
    }

    /// The flow at time zero of the trial.
    pub fn begin(&self, children: [Child; 2], ready: &[Ready; 2]) -> Flow {
        let start = Time::from_nanos(self.flow.start_ns);
        let [client, server] = children;
        let sides = [
            Side::new(client, &ready[0], start),
            Side::new(server, &ready[1], start),
        ];
        let limits = Limits {
            timeout: Time::ZERO + self.job.scenario.timeout,
            cut: self
                .flow
                .duration_ns
                .map(|duration| start + Span::from_nanos(duration)),
        };
        Flow::new(sides, limits)
    }

    fn hello(&self, role: Role) -> Hello {
        let (job, flow) = (self.job, self.flow);
        let [client, server] = self.addresses();
        let (local, remote) = match role {
            Role::Client => (client, server),
            Role::Server => (server, client),
        };
        let only = |whose: Role, path: PathBuf| (role == whose).then_some(path);
        let qlog = job.qlog && self.number == 0;
        Hello {
            contract: contract::CONTRACT,
            role: role.name().to_owned(),
            testcase: flow.testcase.name().to_owned(),
            requests: match role {
                Role::Client => flow
                    .requests
                    .iter()
                    .map(|path| format!("https://server:443{path}"))
                    .collect(),
                Role::Server => Vec::new(),
            },
            options: flow.variant(role).options.clone(),
            seed: format!("{:016x}", seed_of(job.seed.0, self.number, role)),
            epoch_unix_s: EPOCH_UNIX_S,
            local: local.to_string(),
            remote: remote.to_string(),
            www: only(flow.testcase.sender(), self.www.clone()),
            downloads: only(flow.testcase.receiver(), self.downloads()),
            certs: job.certs.clone(),
            keylog: only(Role::Client, self.key_log()),
            qlog: qlog.then(|| job.folder.join("qlog").join(role.name())),
        }
    }

    /// Hears the last words of both programs, and judges by them and by how the flow ended.
    pub fn part(&self, flow: &mut Flow) -> Result<Verdict, ChildError> {
        let end = flow.end.take().unwrap_or(Ok(End::Deadlock))?;
        let [client, server] = flow.finish()?;
        let client: Bye = parse(&client, &flow.side(Role::Client).child, "BYE")?;
        let server: Bye = parse(&server, &flow.side(Role::Server).child, "BYE")?;
        flow.side(Role::Client).child.leave()?;
        flow.side(Role::Server).child.leave()?;
        let (said, asked) = (client.requests.len(), self.flow.requests.len());
        if said != asked {
            let what = format!("BYE reports {said} requests of {asked}");
            return Err(flow.side(Role::Client).child.rubbish(what));
        }
        let client = since(Span::from_nanos(self.flow.start_ns), client);
        let mut verdict = Verdict::of_end(end, client, flow.now);
        verdict.hear_server(&server);
        Ok(verdict)
    }

    /// What the flow came to, from the verdict on it or what went wrong.
    pub fn played(
        &self,
        verdict: Result<Verdict, ChildError>,
        ready: Option<[Ready; 2]>,
        remains: [Remains; 2],
    ) -> Played {
        let verdict = verdict.unwrap_or_else(|error| {
            let role = error.role();
            Verdict::of_failure(
                &self.flow.variant(role).name,
                &error,
                &remains[role.index()],
            )
        });
        Played {
            verdict,
            measured_bytes: self.measured_bytes,
            remains,
            ready,
            wire: Vec::new(),
            has_secrets: false,
        }
    }

    /// Looks at the files that arrived, and at what of `packets` is its own.
    pub fn examine(&self, played: &mut Played, packets: &[Packet]) -> Result<(), Box<dyn Error>> {
        self.check_files(&mut played.verdict)?;
        let key_log = self.secrets();
        let wire = Wire {
            packets,
            flow: self.number,
            key_log: key_log.as_bytes(),
            ends: self.addresses(),
        };
        played.wire = wire.connections();
        played.has_secrets = self.has_secrets();
        self.prove(played);
        Ok(())
    }

    /// What arrived decides: a file that is whole and right makes a trial `ok`, whatever the programs think of it. Of a
    /// duration it is enough that some came, and went on to come.
    fn check_files(&self, verdict: &mut Verdict) -> Result<(), Box<dyn Error>> {
        if matches!(verdict.outcome, Outcome::Crashed | Outcome::Unsupported) {
            return Ok(());
        }
        if self.flow.duration_ns.is_some() {
            verdict.take_duration_into_account();
        } else {
            let wrong = verify(&self.flow.requests, &self.www, &self.downloads())?;
            verdict.take_files_into_account(wrong);
        }
        if verdict.outcome == Outcome::Ok && self.job.trace && !self.has_secrets() {
            verdict.outcome = Outcome::NoSecrets;
            "client wrote no TLS secrets, so the trace cannot be decrypted"
                .clone_into(&mut verdict.detail);
        }
        Ok(())
    }

    /// The TLS secrets that the client has written; empty if there are none.
    pub fn secrets(&self) -> String {
        fs::read_to_string(self.key_log()).unwrap_or_default()
    }

    /// Whether the streams of each connection can be read.
    fn has_secrets(&self) -> bool {
        let mut secrets = KeyLog::default();
        secrets.add(self.secrets().as_bytes());
        let connections = 1 + usize::from(self.flow.testcase.has_two_connections());
        secrets.readable_connections() >= connections
    }

    /// Where every file arrived, the wire has to show what the test case asks for.
    fn prove(&self, played: &mut Played) {
        if played.verdict.outcome != Outcome::Ok {
            return;
        }
        let claim = Claim {
            testcase: self.flow.testcase,
            requests: self.flow.requests.len(),
            size_bytes: self.size_bytes,
            round_trip: self.job.scenario.rtt(),
        };
        if let Err(flaw) = claim.judge(&played.wire) {
            played.verdict.take_wire_into_account(flaw);
        }
    }

    /// What is needed to find out why a program failed, in the trial's folder.
    pub fn leave_files(&self, played: &Played) -> Result<(), Box<dyn Error>> {
        let folder = &self.job.folder;
        if matches!(played.verdict.outcome, Outcome::Ok | Outcome::Unsupported) {
            return Ok(());
        }
        let prefix = self.prefix();
        let roles = [Role::Client, Role::Server].into_iter();
        for (role, remains) in roles.zip(&played.remains) {
            if !remains.log.is_empty() {
                fs::create_dir_all(folder)?;
                fs::write(folder.join(format!("{prefix}{role}.log")), &remains.log)?;
            }
            if played.verdict.culprit == Some(role) {
                fs::create_dir_all(folder)?;
                let frames = folder.join(format!("{prefix}{role}.frames"));
                fs::write(frames, remains.frames.concat())?;
            }
        }
        Ok(())
    }

    fn downloads(&self) -> PathBuf {
        self.scratch.join("downloads")
    }

    fn key_log(&self) -> PathBuf {
        self.scratch.join("client.keys")
    }
}

/// READY from both programs.
pub fn meet(children: &mut [Child; 2]) -> Result<[Ready; 2], ChildError> {
    let [client, server] = children;
    let [client_ready, server_ready] = [
        client.receive(contract::READY),
        server.receive(contract::READY),
    ];
    Ok([
        parse(&client_ready?, client, "READY")?,
        parse(&server_ready?, server, "READY")?,
    ])
}

/// A client's report, whose times count from `zero`, with those of the trial.
fn since(zero: Span, bye: Bye) -> Bye {
    let later = |time: Option<u64>| time.map(|time| time.saturating_add(zero.as_nanos()));
    let requests = bye.requests.into_iter().map(|request| RequestReport {
        first_byte_ns: later(request.first_byte_ns),
        last_byte_ns: later(request.last_byte_ns),
        ..request
    });
    Bye {
        handshake_ns: later(bye.handshake_ns),
        requests: requests.collect(),
        ..bye
    }
}

/// The seed of one side of a flow: each endpoint draws from a stream of its own.
fn seed_of(trial: u64, flow: usize, role: Role) -> u64 {
    let mut digest = Sha256::new()
        .chain_update(trial.to_be_bytes())
        .chain_update(role.name());
    if flow > 0 {
        digest.update((flow as u64).to_be_bytes());
    }
    u64::from_be_bytes(
        *digest
            .finalize()
            .first_chunk()
            .expect("SHA-256 has 32 bytes"),
    )
}

fn parse<T: serde::de::DeserializeOwned>(
    body: &[u8],
    child: &Child,
    frame: &str,
) -> Result<T, ChildError> {
    serde_json::from_slice(body).map_err(|error| child.rubbish(format!("{frame}: {error}")))
}
