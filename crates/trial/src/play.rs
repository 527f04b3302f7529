//! What the programs of one flow are given, and what is made of what they leave.

use std::error::Error;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use bentpipe_endpoint::contract::{CONTRACT, ProxyHello, Ready};
use bentpipe_link::HostName;
use bentpipe_units::Span;
use bentpipe_wire::KeyLog;

use crate::course::HopCourse;
use crate::job::{self, EPOCH_UNIX_S, Job, Role, Variant};
use crate::measure::Played;
use crate::packet_log::PacketLog;
use crate::proof::Claim;
use crate::remains::Remains;
use crate::schema::Outcome;
use crate::sight::Sight;
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

    /// Addresses at both ends of a hop, that towards the client first: for documentation (RFC 5737), so they are in traces, and nobody's.
    /// Clients and servers have hosts of their own, proxies ports.
    #[must_use]
    pub fn addresses(&self, hop: usize) -> [SocketAddrV4; 2] {
        let hosts = self.job.hosts();
        let own = u8::try_from(self.number + 1).expect("a job has no more flows than that");
        let at = |address: [u8; 4], port: u16| SocketAddrV4::new(Ipv4Addr::from(address), port);
        let near = match hosts[hop] {
            HostName::Terminal => at([203, 0, 113, 1], self.proxy_port(50_000)),
            HostName::Gateway => at([198, 51, 100, 254], self.proxy_port(50_000)),
            _ => at([192, 0, 2, own], 50_000),
        };
        let far = match hosts[hop + 1] {
            HostName::Terminal => at([192, 0, 2, 254], self.proxy_port(443)),
            HostName::Gateway => at([203, 0, 113, 2], self.proxy_port(443)),
            _ => at([198, 51, 100, own], 443),
        };
        [near, far]
    }

    fn proxy_port(&self, first: u16) -> u16 {
        first + u16::try_from(self.number).expect("a job has fewer flows")
    }

    /// Its programs, each with where it is, from the client to the server.
    #[must_use]
    pub fn programs(&self) -> Vec<(HostName, &'a Variant)> {
        let proxies = self.job.proxies.iter();
        let proxies = proxies.map(|proxy| (proxy.place, &proxy.variant));
        let client = (HostName::Client, &self.flow.client);
        let server = (HostName::Server, &self.flow.server);
        [client]
            .into_iter()
            .chain(proxies)
            .chain([server])
            .collect()
    }

    /// What the proxy on `host` is told that is told nothing of its previous hop. Its addresses are where it listens, where it connects
    /// from, and its next hop.
    #[must_use]
    pub fn proxy_hello(
        &self,
        host: HostName,
        seed: u64,
        [listen, local, next_hop]: [SocketAddrV4; 3],
    ) -> ProxyHello {
        let proxy = self.job.proxies.iter().find(|it| it.place == host);
        ProxyHello {
            contract: CONTRACT,
            role: "proxy".to_owned(),
            place: host.name().to_owned(),
            options: proxy
                .map(|it| it.variant.options.clone())
                .unwrap_or_default(),
            seed: format!("{seed:016x}"),
            epoch_unix_s: EPOCH_UNIX_S,
            previous_hop: None,
            listen: listen.to_string(),
            local: local.to_string(),
            next_hop: next_hop.to_string(),
            server_name: "server".to_owned(),
            alpn: vec![self.flow.alpn.clone()],
            certs: self.job.certs.clone(),
            keylog: Some(self.key_log(host)),
            qlog: self.qlog_of(host),
        }
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

    /// The folder for the qlog of the program on `host`, if one is wanted. Only the first flow has one.
    #[must_use]
    pub fn qlog_of(&self, host: HostName) -> Option<PathBuf> {
        let wanted = self.job.qlog && self.number == 0;
        wanted.then(|| self.job.folder.join("qlog").join(host.name()))
    }

    /// Makes the folders for qlogs, if any are wanted.
    pub fn make_qlog_folders(&self) -> io::Result<()> {
        for host in self.job.hosts() {
            if let Some(folder) = self.qlog_of(host) {
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
        ready: Option<Vec<Ready>>,
        mut remains: Vec<Remains>,
    ) -> Played {
        // Of programs that were never started nothing remains.
        remains.resize_with(self.job.hosts().len(), Remains::default);
        Played {
            verdict,
            measured_bytes: self.measured_bytes,
            remains,
            ready,
            sights: self.job.hops().iter().map(|_| Sight::default()).collect(),
        }
    }

    /// Looks at the files that arrived, and at what is its own of what each hop saw.
    pub fn examine(&self, played: &mut Played, hops: &[HopCourse]) -> Result<(), Box<dyn Error>> {
        self.check_files(&mut played.verdict)?;
        played.sights = (0..)
            .zip(hops)
            .map(|(hop, it)| self.sight(hop, &it.log))
            .collect();
        let is_connected = played.sights[0].is_connected();
        played.verdict.take_handshake_into_account(is_connected);
        if self.flow.duration_ns.is_some() {
            let arrivals = played.arrivals(self.job, self.flow.testcase);
            let arrivals = arrivals.unwrap_or_default();
            played
                .verdict
                .take_arrivals_into_account(!arrivals.is_empty());
        }
        self.prove(played);
        Ok(())
    }

    fn sight(&self, hop: usize, log: &PacketLog) -> Sight {
        let key_log = self.secrets(hop);
        let wire = Wire {
            log,
            flow: self.number,
            key_log: key_log.as_bytes(),
            ends: self.addresses(hop),
        };
        Sight {
            wire: wire.connections(),
            has_secrets: self.has_secrets(hop),
        }
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
        if verdict.outcome == Outcome::Ok && self.job.trace && !self.has_secrets(0) {
            verdict.outcome = Outcome::NoSecrets;
            "client wrote no TLS secrets, so the trace cannot be decrypted"
                .clone_into(&mut verdict.detail);
        }
        Ok(())
    }

    /// The TLS secrets of a hop, which the program at its end towards the client has written; empty if there are none.
    #[must_use]
    pub fn secrets(&self, hop: usize) -> String {
        let host = self.job.hosts()[hop];
        fs::read_to_string(self.key_log(host)).unwrap_or_default()
    }

    /// Whether the streams of each connection can be read. How many a proxy opens is its own affair.
    fn has_secrets(&self, hop: usize) -> bool {
        let mut secrets = KeyLog::default();
        secrets.add(self.secrets(hop).as_bytes());
        let second = hop == 0 && self.flow.testcase.has_two_connections();
        secrets.readable_connections() > usize::from(second)
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
            round_trip: self.job.hops()[0].rtt(),
        };
        if let Err(flaw) = claim.judge(&played.sights[0].wire) {
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
        for (host, remains) in self.job.hosts().into_iter().zip(&played.remains) {
            if !remains.log.is_empty() {
                fs::create_dir_all(folder)?;
                fs::write(folder.join(format!("{prefix}{host}.log")), &remains.log)?;
            }
            if played.verdict.culprit == Some(host) && !remains.frames.is_empty() {
                fs::create_dir_all(folder)?;
                let frames = folder.join(format!("{prefix}{host}.frames"));
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

    /// The file for the TLS secrets of the connections that the program on `host` opens.
    #[must_use]
    pub fn key_log(&self, host: HostName) -> PathBuf {
        self.scratch.join(format!("{host}.keys"))
    }
}
