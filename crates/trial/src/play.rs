//! What the programs of one flow are given, and what is made of what they leave.

use std::error::Error;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use bentpipe_endpoint::contract::Ready;
use bentpipe_trace::KeyLog;
use bentpipe_units::Span;

use crate::job::{self, Job, Outcome, Role};
use crate::measure::Played;
use crate::packet_log::PacketLog;
use crate::proof::Claim;
use crate::remains::Remains;
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
    #[must_use]
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

    /// Its number, from 0; that of the flow that is measured.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The job that it is part of.
    #[must_use]
    pub fn job(&self) -> &'a Job {
        self.job
    }

    /// As the job has it.
    #[must_use]
    pub fn flow(&self) -> &'a job::Flow {
        self.flow
    }

    /// The folder that is `role`'s to serve from, if it sends.
    #[must_use]
    pub fn www_of(&self, role: Role) -> Option<&Path> {
        (role == self.flow.testcase.sender()).then_some(&self.www)
    }

    /// The folder that is `role`'s to store in, if it receives.
    #[must_use]
    pub fn downloads_of(&self, role: Role) -> Option<PathBuf> {
        (role == self.flow.testcase.receiver()).then(|| self.downloads())
    }

    /// The folder for the qlog of `role`, if one is wanted. Only the first flow has one.
    #[must_use]
    pub fn qlog_of(&self, role: Role) -> Option<PathBuf> {
        let wanted = self.job.qlog && self.number == 0;
        wanted.then(|| self.job.folder.join("qlog").join(role.name()))
    }

    /// Makes the folders for qlogs, if any are wanted.
    pub fn make_qlog_folders(&self) -> io::Result<()> {
        for role in [Role::Client, Role::Server] {
            if let Some(folder) = self.qlog_of(role) {
                fs::create_dir_all(folder)?;
            }
        }
        Ok(())
    }

    /// What the flow came to, from the verdict on it.
    #[must_use]
    pub fn played(
        &self,
        verdict: Verdict,
        ready: Option<[Ready; 2]>,
        remains: [Remains; 2],
    ) -> Played {
        Played {
            verdict,
            measured_bytes: self.measured_bytes,
            remains,
            ready,
            wire: Vec::new(),
            has_secrets: false,
        }
    }

    /// Looks at the files that arrived, and at what of `log` is its own.
    pub fn examine(&self, played: &mut Played, log: &PacketLog) -> Result<(), Box<dyn Error>> {
        self.check_files(&mut played.verdict)?;
        let key_log = self.secrets();
        let wire = Wire {
            log,
            flow: self.number,
            key_log: key_log.as_bytes(),
            ends: self.addresses(),
        };
        played.wire = wire.connections();
        played.has_secrets = self.has_secrets();
        played
            .verdict
            .take_handshake_into_account(played.is_connected());
        if self.flow.duration_ns.is_some() {
            let arrivals = played.arrivals(self.flow.testcase).unwrap_or_default();
            played
                .verdict
                .take_arrivals_into_account(!arrivals.is_empty());
        }
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
    #[must_use]
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
            if played.verdict.culprit == Some(role) && !remains.frames.is_empty() {
                fs::create_dir_all(folder)?;
                let frames = folder.join(format!("{prefix}{role}.frames"));
                fs::write(frames, remains.frames.concat())?;
            }
        }
        Ok(())
    }

    /// The folder that files are stored in.
    #[must_use]
    pub fn downloads(&self) -> PathBuf {
        self.scratch.join("downloads")
    }

    /// The file that the client writes its TLS secrets to.
    #[must_use]
    pub fn key_log(&self) -> PathBuf {
        self.scratch.join("client.keys")
    }
}
