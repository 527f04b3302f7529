//! A coordinator that fits a page: both programs live in turn, and every datagram takes the same
//! time.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use bentpipe_endpoint::contract::{
    Arrival, BYE, Bye, FINISH, HELLO, Hello, RAN, READY, Ran, encode_message, encode_run,
    hq_interop,
};
use bentpipe_endpoint::driver::Pipes;
use bytes::Bytes;
use command_fds::{CommandFdExt, FdMapping};

use crate::packets::{INITIAL, LongPacket, Sent};

const ONE_WAY_NS: u64 = 50_000_000;
const LIMIT_NS: u64 = 60_000_000_000;

pub fn certs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../endpoints/certs")
}

/// Bytes of no pattern, so that a shifted or lost block shows.
pub fn content(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(size).collect()
}

pub fn hello(role: &str, folder: &Path) -> Hello {
    let (client, server) = ("192.0.2.1:50000".to_owned(), "198.51.100.1:443".to_owned());
    let (www, downloads) = (folder.join("www"), folder.join("downloads"));
    let is_client = role == "client";
    Hello {
        contract: 1,
        role: role.into(),
        testcase: "transfer".into(),
        requests: Vec::new(),
        options: [].into(),
        seed: "00f1e2d3c4b5a697".into(),
        epoch_unix_s: 946_684_800,
        local: if is_client {
            client.clone()
        } else {
            server.clone()
        },
        remote: if is_client { server } else { client },
        www: (!is_client).then_some(www),
        downloads: is_client.then_some(downloads),
        certs: certs(),
        keylog: None,
        qlog: None,
        alpn: hq_interop(),
        page: Vec::new(),
        live: None,
        frames: None,
        shared_memory: None,
        paths: Vec::new(),
    }
}

/// The HELLOs of both sides of a trial of `test_case`.
pub fn pair(test_case: &str, folder: &Path, paths: &[impl std::fmt::Display]) -> (Hello, Hello) {
    let (mut client, mut server) = (hello("client", folder), hello("server", folder));
    for side in [&mut client, &mut server] {
        side.testcase = test_case.into();
        if test_case == "upload" {
            let (www, downloads) = (folder.join("www"), folder.join("downloads"));
            let is_client = side.role == "client";
            side.www = is_client.then_some(www);
            side.downloads = (!is_client).then_some(downloads);
        }
    }
    let url = |path| format!("https://server:443/{path}");
    client.requests = paths.iter().map(url).collect();
    (client, server)
}

/// A program under test.
pub struct Program {
    child: Child,
    pipes: Pipes,
    pub next_wake: u64,
    pub done: bool,
    pending: Vec<Arrival>,
}

impl Program {
    /// Starts it and says HELLO.
    pub fn start(path: &str, hello: &Hello) -> Self {
        let (its_3, to) = std::io::pipe().unwrap();
        let (from, its_4) = std::io::pipe().unwrap();
        let mappings = vec![
            FdMapping {
                parent_fd: OwnedFd::from(its_3),
                child_fd: 3,
            },
            FdMapping {
                parent_fd: OwnedFd::from(its_4),
                child_fd: 4,
            },
        ];
        let mut command = Command::new(path);
        let child = command
            .arg("--virtual-time")
            .fd_mappings(mappings)
            .unwrap()
            .spawn()
            .unwrap();
        drop(command);
        let mut pipes = Pipes::new(
            File::from(OwnedFd::from(from)),
            File::from(OwnedFd::from(to)),
        );
        pipes
            .send(&encode_message(HELLO, &serde_json::to_vec(hello).unwrap()))
            .unwrap();
        Self {
            child,
            pipes,
            next_wake: u64::MAX,
            done: false,
            pending: Vec::new(),
        }
    }

    /// Waits for READY; if there is none, for the exit code.
    pub fn ready(&mut self) -> Result<serde_json::Value, Option<i32>> {
        let Some((kind, body)) = self.pipes.receive().unwrap() else {
            return Err(self.child.wait().unwrap().code());
        };
        assert_eq!(kind, READY);
        let ready: serde_json::Value = serde_json::from_slice(body).unwrap();
        self.next_wake = ready["next_wake"].as_u64().unwrap_or(u64::MAX);
        Ok(ready)
    }

    fn next_event(&self) -> u64 {
        self.pending
            .first()
            .map_or(u64::MAX, |arrival| arrival.time)
            .min(self.next_wake)
    }

    /// Lets it live until `until`; returns what departed and the body of RAN.
    fn live(&mut self, until: u64) -> (Vec<Arrival>, Vec<u8>) {
        let due = self.pending.partition_point(|arrival| arrival.time < until);
        let arrivals: Vec<_> = self.pending.drain(..due).collect();
        self.pipes.send(&encode_run(until, &arrivals)).unwrap();
        let (kind, body) = self.pipes.receive().unwrap().expect("an answer to RUN");
        assert_eq!(kind, RAN);
        let ran = Ran::decode(body).unwrap();
        assert!(
            ran.next_wake >= until,
            "next_wake {} before {until}",
            ran.next_wake
        );
        assert!(ran.departures.is_sorted_by_key(|departure| departure.time));
        self.next_wake = ran.next_wake;
        self.done = ran.done;
        let sent = |departure: &bentpipe_endpoint::contract::Datagram| Arrival {
            time: departure.time + ONE_WAY_NS,
            ecn: departure.ecn,
            payload: Bytes::copy_from_slice(&body[departure.payload.clone()]),
        };
        (ran.departures.iter().map(sent).collect(), body.to_vec())
    }

    /// Says FINISH and waits for the end.
    pub fn finish(mut self) -> (Bye, ExitStatus) {
        self.pipes.send(&encode_message(FINISH, &[])).unwrap();
        let (kind, body) = self.pipes.receive().unwrap().expect("an answer to FINISH");
        assert_eq!(kind, BYE);
        (
            serde_json::from_slice(body).unwrap(),
            self.child.wait().unwrap(),
        )
    }

    /// Ends without FINISH.
    pub fn abandon(self) -> ExitStatus {
        let Self {
            mut child, pipes, ..
        } = self;
        drop(pipes);
        child.wait().unwrap()
    }
}

/// The outcome of a trial.
pub struct Outcome {
    pub client: Bye,
    pub server: Bye,
    /// Every RAN of both programs.
    pub log: Vec<u8>,
    pub by_client: Sent,
    pub by_server: Sent,
}

/// The coordinator of a trial: two programs and their path.
pub struct Coordinator {
    client: Program,
    server: Program,
    now: u64,
    log: Vec<u8>,
    by_client: Sent,
    by_server: Sent,
}

impl Coordinator {
    /// Starts both.
    pub fn new([client, server]: [&str; 2], its: &Hello, others: &Hello) -> Self {
        let mut client = Program::start(client, its);
        let mut server = Program::start(server, others);
        client.ready().unwrap();
        server.ready().unwrap();
        Self {
            client,
            server,
            now: 0,
            log: Vec::new(),
            by_client: Sent::default(),
            by_server: Sent::default(),
        }
    }

    /// Runs both for as long as no datagram of one can reach the other.
    fn step(&mut self) {
        let next = self.client.next_event().min(self.server.next_event());
        assert!(next < LIMIT_NS, "the trial does not end");
        self.now = next + ONE_WAY_NS;
        let (to_server, heard) = self.client.live(self.now);
        self.log.extend(heard);
        let (to_client, heard) = self.server.live(self.now);
        self.log.extend(heard);
        self.by_client.add(&to_server, self.now);
        self.by_server.add(&to_client, self.now);
        self.client.pending.extend(to_client);
        self.server.pending.extend(to_server);
    }

    /// Puts a new server in the place of the old one as soon as the client starts its second
    /// connection.
    pub fn restart_server(&mut self, path: &str, hello: &Hello) {
        let initial = |packet: &LongPacket| packet.kind == INITIAL && packet.by > 4 * ONE_WAY_NS;
        while !self.by_client.packets.iter().any(initial) {
            self.step();
        }
        let mut server = Program::start(path, hello);
        server.ready().unwrap();
        server.pending = std::mem::take(&mut self.server.pending);
        let old = std::mem::replace(&mut self.server, server);
        assert!(old.finish().1.success());
    }

    /// Goes on until both are done.
    pub fn finish(mut self) -> Outcome {
        while !(self.client.done && self.server.done) {
            self.step();
        }
        let (client, status) = self.client.finish();
        assert!(status.success());
        let (server, status) = self.server.finish();
        assert!(status.success());
        Outcome {
            client,
            server,
            log: self.log,
            by_client: self.by_client,
            by_server: self.by_server,
        }
    }
}

/// Runs a trial of a program with itself to its end.
pub fn trial(path: &str, client: &Hello, server: &Hello) -> Outcome {
    Coordinator::new([path, path], client, server).finish()
}

/// A folder with `www/size` and an empty `downloads`.
pub fn folder(size: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("www")).unwrap();
    fs::create_dir(folder.path().join("downloads")).unwrap();
    fs::write(
        folder.path().join("www").join(size.to_string()),
        content(size),
    )
    .unwrap();
    folder
}
