//! The set-up of a program in a trial, from HELLO or from the environment.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::clock::Clock;
use crate::contract::{CONTRACT, Hello, HelloPath, hq_interop};
use crate::error::EndpointError;
use crate::frames::FrameStream;
use crate::log_file::{LogFile, LogFolder};
use crate::options::Options;
use crate::page::{LiveStream, Resource};
use crate::test_case::TestCase;

/// The option that says when a client migrates.
pub const MIGRATE: &str = "migrate";

/// The client's address on each path, in socket mode.
const PATHS: &str = "BENTPIPE_PATHS";

/// The side that the program plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The side that opens connections and sends requests.
    Client,
    /// The side that answers them.
    Server,
}

impl Role {
    fn parse(text: &str) -> Result<Self, EndpointError> {
        match text {
            "client" => Ok(Self::Client),
            "server" => Ok(Self::Server),
            other => Err(EndpointError::Unsupported(format!("role {other:?}"))),
        }
    }

    /// The contract's word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// The surroundings of a connection, which its options depend on: role, kind of time, logs, clock.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The side of the connection.
    pub role: Role,
    /// Real time and sockets; else virtual time.
    pub real_time: bool,
    /// The folder for qlog.
    pub qlog: Option<LogFolder>,
    /// The time, as the driver sets it.
    pub clock: Clock,
}

/// The setup of a program: what a trial asks of it.
#[derive(Debug)]
pub struct Setup {
    /// The side that it plays.
    pub role: Role,
    /// The test case.
    pub test_case: TestCase,
    /// A client's URLs; in `frames` a server's, too.
    pub requests: Vec<String>,
    /// The application protocol.
    pub alpn: String,
    /// In `page`, of a client: when each request is asked for.
    pub page: Vec<Resource>,
    /// In `live`, of a client: what its requests are of.
    pub live: Option<LiveStream>,
    /// In `frames`: what its requests are of.
    pub frames: Option<FrameStream>,
    /// In `page`, `live` and `frames`, of a client in socket mode: the file for its BYE.
    pub report: Option<PathBuf>,
    /// The variant's options.
    pub options: BTreeMap<String, String>,
    /// Its own address; in socket mode a client's port is 0, any.
    pub local: SocketAddr,
    /// The other side's address; unknown to a server in socket mode.
    pub remote: Option<SocketAddr>,
    /// The paths between both sides, by number, where there are several. In socket mode ports of
    /// clients are 0, any.
    pub paths: Vec<PathEnds>,
    /// The folder of a server's files; in `upload` of a client's.
    pub www: Option<PathBuf>,
    /// The folder for a client's replies; in `upload` for what a server receives.
    pub downloads: Option<PathBuf>,
    /// The folder of `ca.pem`, `cert.pem` and `priv.key`.
    pub certs: PathBuf,
    /// The file for TLS secrets.
    pub keylog: Option<LogFile>,
    /// The folder for qlog.
    pub qlog: Option<LogFolder>,
    /// Real time and sockets; else virtual time.
    pub real_time: bool,
    /// The time, as the driver sets it.
    pub clock: Clock,
}

/// The addresses of both ends of one of several paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathEnds {
    /// The program's own.
    pub local: SocketAddr,
    /// The other side's.
    pub remote: SocketAddr,
}

impl PathEnds {
    fn parse(path: &HelloPath) -> Result<Self, EndpointError> {
        Ok(Self {
            local: parse_address("paths.local", &path.local)?,
            remote: parse_address("paths.remote", &path.remote)?,
        })
    }

    /// Reads `BENTPIPE_PATHS`: the client's address on each path, behind the path's name.
    fn parse_environment(
        text: &str,
        role: Role,
        [local, remote]: [SocketAddr; 2],
    ) -> Result<Vec<Self>, EndpointError> {
        let read = |word: &str| {
            let (_, address) = word.split_once('=')?;
            let client = SocketAddr::new(address.parse().ok()?, 0);
            Some(match role {
                Role::Client => Self {
                    local: client,
                    remote,
                },
                Role::Server => Self {
                    local,
                    remote: client,
                },
            })
        };
        let each = text.split_whitespace().map(read).collect::<Option<_>>();
        each.ok_or_else(|| EndpointError::Field {
            field: PATHS,
            value: text.to_owned(),
            problem: "write NAME=ADDRESS for each path, such as geo=192.0.2.1 leo=192.0.2.2".into(),
        })
    }
}

impl Setup {
    /// Whether a client is to migrate: then it has one path at a time.
    #[must_use]
    pub fn migrates(&self) -> bool {
        self.options.contains_key(MIGRATE)
    }

    /// Whether datagrams take the paths of their addresses although this end has one at a time:
    /// that of a client that migrates, and of a server, which answers to wherever its client is.
    #[must_use]
    pub fn follows_paths(&self) -> bool {
        self.paths.len() > 1 && (self.role == Role::Server || self.migrates())
    }

    /// Virtual time: reads HELLO.
    pub fn from_hello(hello: Hello) -> Result<Self, EndpointError> {
        if hello.contract != CONTRACT {
            let what = format!(
                "version {} of the contract; this is {CONTRACT}",
                hello.contract
            );
            return Err(EndpointError::Unsupported(what));
        }
        let test_case = TestCase::parse(&hello.testcase)?;
        let role = Role::parse(&hello.role)?;
        Ok(Self {
            role,
            test_case,
            requests: hello.requests,
            alpn: hello.alpn,
            page: hello.page,
            live: hello.live,
            frames: hello.frames,
            report: None,
            options: hello.options,
            local: parse_address("local", &hello.local)?,
            remote: Some(parse_address("remote", &hello.remote)?),
            paths: hello
                .paths
                .iter()
                .map(PathEnds::parse)
                .collect::<Result<_, _>>()?,
            www: hello.www,
            downloads: hello.downloads,
            certs: hello.certs,
            keylog: hello.keylog.as_deref().map(LogFile::create).transpose()?,
            qlog: hello.qlog.map(|path| LogFolder::new(path, role.name())),
            real_time: false,
            clock: Clock::new(Duration::from_secs(hello.epoch_unix_s)),
        })
    }

    /// Socket mode: reads the environment.
    pub fn from_environment() -> Result<Self, EndpointError> {
        let test_case = TestCase::parse(&variable("TESTCASE")?)?;
        let role = Role::parse(&variable("ROLE")?)?;
        let urls = |text: String| text.split_whitespace().map(str::to_owned).collect();
        let (requests, local, remote) = match role {
            Role::Server => {
                let requests = env::var("REQUESTS").map(urls).unwrap_or_default();
                let listen = variable("BENTPIPE_LISTEN")?;
                (requests, parse_address("BENTPIPE_LISTEN", &listen)?, None)
            }
            Role::Client => {
                let requests: Vec<_> = variable("REQUESTS").map(urls)?;
                let remote = remote_address(&requests)?;
                let any = if remote.is_ipv4() {
                    "0.0.0.0:0"
                } else {
                    "[::]:0"
                };
                (requests, parse_address("local", any)?, Some(remote))
            }
        };
        let folder = |name| {
            env::var_os(name)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        Ok(Self {
            role,
            test_case,
            requests,
            alpn: env::var("BENTPIPE_ALPN").unwrap_or_else(|_| hq_interop()),
            page: read_json("PAGE", folder("PAGE"))?.unwrap_or_default(),
            live: read_json("LIVE", folder("LIVE"))?,
            frames: read_json("FRAMES", folder("FRAMES"))?,
            report: folder("REPORT"),
            options: Options::parse(&env::var("BENTPIPE_OPTIONS").unwrap_or_default())?.into_map(),
            local,
            remote,
            paths: PathEnds::parse_environment(
                &env::var(PATHS).unwrap_or_default(),
                role,
                [local, remote.unwrap_or(local)],
            )?,
            www: folder("WWW"),
            downloads: folder("DOWNLOADS"),
            certs: variable("CERTS")?.into(),
            keylog: folder("SSLKEYLOGFILE")
                .as_deref()
                .map(LogFile::append)
                .transpose()?,
            qlog: folder("QLOGDIR").map(|path| LogFolder::new(path, role.name())),
            real_time: true,
            clock: Clock::start_now(),
        })
    }

    /// The path of a file in the folder of certificates, as libraries in C want it.
    pub fn certificate_file(&self, name: &str) -> Result<String, EndpointError> {
        let path = self.certs.join(name);
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| EndpointError::Tls(format!("{}: not UTF-8", path.display())))
    }

    /// The surroundings on which the options of its connections depend.
    #[must_use]
    pub fn surroundings(&self) -> Surroundings {
        Surroundings {
            role: self.role,
            real_time: self.real_time,
            qlog: self.qlog.clone(),
            clock: self.clock.clone(),
        }
    }
}

/// The contents of the file that a variable names, in the form of HELLO.
fn read_json<T: DeserializeOwned>(
    field: &'static str,
    file: Option<PathBuf>,
) -> Result<Option<T>, EndpointError> {
    let Some(file) = file else {
        return Ok(None);
    };
    let text = fs::read(&file).map_err(EndpointError::file(&file))?;
    let read = serde_json::from_slice(&text).map_err(|error| EndpointError::Field {
        field,
        value: file.display().to_string(),
        problem: format!("it is not as endpoints/CONTRACT.md has it: {error}"),
    })?;
    Ok(Some(read))
}

fn variable(name: &'static str) -> Result<String, EndpointError> {
    env::var(name).map_err(|_| EndpointError::Field {
        field: name,
        value: String::new(),
        problem: "this environment variable must be set (endpoints/contract/socket-mode.md)".into(),
    })
}

fn parse_address(field: &'static str, value: &str) -> Result<SocketAddr, EndpointError> {
    value.parse().map_err(|_| EndpointError::Field {
        field,
        value: value.to_owned(),
        problem: "write an IP address and a port, such as 127.0.0.1:4433".into(),
    })
}

/// The address in the first of the URLs.
fn remote_address(requests: &[String]) -> Result<SocketAddr, EndpointError> {
    let first = requests.first().map_or("", String::as_str);
    let authority = first
        .strip_prefix("https://")
        .and_then(|rest| rest.split('/').next());
    authority
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| EndpointError::Field {
            field: "REQUESTS",
            value: first.to_owned(),
            problem:
                "write URLs with an IP address and a port, such as https://127.0.0.1:4433/1024"
                    .into(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_addresses_are_those_of_its_paths() {
        let ends = ["192.0.2.9:1", "198.51.100.1:443"].map(|text| text.parse().unwrap());
        let read = |text, role| PathEnds::parse_environment(text, role, ends);
        let client = read("geo=192.0.2.1 leo=192.0.2.2", Role::Client).unwrap();
        assert_eq!(client[1].local.to_string(), "192.0.2.2:0");
        assert_eq!(client[1].remote, ends[1]);
        let server = read("geo=2001:db8:1::1 leo=2001:db8:1::2", Role::Server).unwrap();
        assert_eq!(server[1].local, ends[0]);
        assert_eq!(server[1].remote.to_string(), "[2001:db8:1::2]:0");
        assert_eq!(read("", Role::Client).unwrap(), []);
        for wrong in ["192.0.2.1", "geo=moon", "geo=192.0.2.1 leo="] {
            let error = read(wrong, Role::Client).unwrap_err().to_string();
            assert!(error.contains("BENTPIPE_PATHS"), "{error}");
        }
    }
}
