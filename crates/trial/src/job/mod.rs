//! The job that a trial is started with, as JSON.
//!
//! It says all that a trial depends on, and knows nothing of how trials are run.

mod chain;
mod page;
mod testcase;
mod tunnel;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use bentpipe_endpoint::{FrameStream, LiveStream};
use bentpipe_link::{HostName, Scenario};
use bentpipe_units::{Span, Time};
use bentpipe_wire::IpVersion;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

pub use self::chain::{ProxyJob, Relays};
pub use self::page::{PageResource, ResourceType};
pub use self::testcase::TestCaseFacts;
pub use self::tunnel::{TunnelJob, TunnelTransport};

/// The wall-clock time of virtual time zero: 1 January 2000, where Go's bubbles begin.
pub const EPOCH_UNIX_S: u64 = 946_684_800;

/// The role of a program in a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The side that opens connections.
    Client,
    /// The side that accepts them.
    Server,
}

impl Role {
    /// The word of the contract.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// Its host.
    #[must_use]
    pub fn host(self) -> HostName {
        match self {
            Self::Client => HostName::Client,
            Self::Server => HostName::Server,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A program with its options: a stack as one side of a trial, or a proxy.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The name that users type, options included.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The options, those of its `stack.toml`, by name.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// The version of the stack, as it gave it when it was installed. In virtual time each program
    /// gives it anew.
    #[serde(default)]
    pub version: Option<String>,
    /// The kind of its datagrams in virtual time.
    #[serde(default)]
    pub carries: Carries,
}

/// The kind of a program's datagrams in virtual time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carries {
    /// A UDP payload.
    #[default]
    Udp,
    /// A whole IP packet.
    Ip,
}

/// The format of jobs (`schemas/job.toml`).
pub const FORMAT: u64 = 3;

/// The most flows that a trial may have: each has a separate address.
pub const FLOW_LIMIT: usize = 64;

/// A client and its own server, and what is transferred between them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowJob {
    /// The test case that its programs carry out (`endpoints/contract/test-cases.md`).
    pub testcase: String,
    /// The facts of the test case that measures need.
    pub testcase_facts: TestCaseFacts,
    /// The transport protocol: `quic` or `tcp`.
    #[serde(default = "quic")]
    pub transport: String,
    /// The application protocol, by its ALPN.
    #[serde(default = "hq_interop")]
    pub alpn: String,
    /// Paths below `www`, each with a leading slash.
    pub requests: Vec<String>,
    /// The resources of the page, if it is one: one for each request.
    #[serde(default)]
    pub page: Vec<PageResource>,
    /// The live stream, if it is one: its requests are segments in their order, each at every rate.
    #[serde(default)]
    pub live: Option<LiveStream>,
    /// The stream of frames, if it is one: its requests are frames in their order.
    #[serde(default)]
    pub frames: Option<FrameStream>,
    /// The time at which it begins.
    #[serde(default)]
    pub start_ns: u64,
    /// The time after which it is cut; its files, which are made here, are too large to be
    /// transferred before.
    #[serde(default)]
    pub duration_ns: Option<u64>,
    /// Options that middleboxes have for this flow, by name, in place of the same ones of theirs.
    #[serde(default)]
    pub middlebox: BTreeMap<String, String>,
    /// The stack that opens its connection.
    pub client: Variant,
    /// The stack that accepts it.
    pub server: Variant,
}

impl FlowJob {
    /// The segments of a live stream, each as the paths of it at every rate.
    pub fn segments(&self) -> impl Iterator<Item = &[String]> {
        let rates = self.live.as_ref().map(|it| it.rates_bps.len());
        rates.into_iter().flat_map(|it| self.requests.chunks(it))
    }

    /// Whether its client says what came when: measures hang on that.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        !self.page.is_empty() || self.live.is_some() || self.frames.is_some()
    }

    /// The variant that plays `role`.
    #[must_use]
    pub fn variant(&self, role: Role) -> &Variant {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }

    /// The last time that is known to belong to it.
    #[must_use]
    pub fn last(&self) -> Time {
        Time::from_nanos(self.start_ns) + Span::from_nanos(self.duration_ns.unwrap_or(0))
    }
}

/// The format of a job, whatever else is in it.
#[derive(Debug, Deserialize)]
struct Format {
    #[serde(default = "newest_format")]
    format: u64,
}

/// The job of a trial: everything that it depends on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The format's number; without one it is this format.
    #[serde(default = "newest_format")]
    pub format: u64,
    /// The path, resolved.
    pub scenario: Scenario,
    /// The flows that share the path. The first is the one that is measured.
    pub flows: Vec<FlowJob>,
    /// The proxies between the ends of every flow, from the client to the server; each flow has
    /// separate programs.
    #[serde(default)]
    pub proxies: Vec<ProxyJob>,
    /// The tunnel of all flows, between the client and another host. Proxies see nothing but it.
    #[serde(default)]
    pub tunnel: Option<TunnelJob>,
    /// The version of IP that programs speak.
    #[serde(default, deserialize_with = "ip_version")]
    pub ip: IpVersion,
    /// The folder with the files that are served.
    pub www: PathBuf,
    /// The folder of the contract's certificates.
    pub certs: PathBuf,
    /// 64 bits in hexadecimal.
    pub seed: Seed,
    /// The folder for the files of the trial; made only if it leaves some.
    pub folder: PathBuf,
    /// Leave `trace.pcapng` there, with the TLS secrets inside.
    pub trace: bool,
    /// Leave `qlog/client/` and `qlog/server/` there. Writing them costs some stacks half as much
    /// again.
    pub qlog: bool,
    /// Wall time after which a silent program is given up.
    #[serde(default = "default_silence_s")]
    pub silence_s: u64,
    /// Offer programs memory for the bodies of messages in virtual time. The same packets come
    /// without.
    #[serde(default = "yes")]
    pub shared_memory: bool,
}

fn ip_version<'de, D: Deserializer<'de>>(value: D) -> Result<IpVersion, D::Error> {
    u8::deserialize(value)?.try_into().map_err(D::Error::custom)
}

fn newest_format() -> u64 {
    FORMAT
}

fn quic() -> String {
    "quic".to_owned()
}

fn hq_interop() -> String {
    "hq-interop".to_owned()
}

fn yes() -> bool {
    true
}

fn default_silence_s() -> u64 {
    30
}

impl Job {
    /// Reads a job, and lays the cables that its proxies, and a tunnel that ends at the gateway,
    /// need.
    pub fn read(text: &str) -> Result<Self, String> {
        let wrong = |error| format!("the job: {error}");
        // First of all: a job of another format has other keys.
        let Format { format } = serde_json::from_str(text).map_err(wrong)?;
        if format != FORMAT {
            return Err(format!(
                "the job is of format {format}, and this program reads format {FORMAT}"
            ));
        }
        let mut job: Self = serde_json::from_str(text).map_err(wrong)?;
        job.check()?;
        let stops = job.stops();
        job.scenario = job.scenario.with_cables(&stops);
        Ok(job)
    }

    /// Checks a job's requirements that are the same in every testbed.
    fn check(&self) -> Result<(), String> {
        if !(1..=FLOW_LIMIT).contains(&self.flows.len()) {
            let count = self.flows.len();
            return Err(format!("{count} flows, where 1 to {FLOW_LIMIT} can be"));
        }
        self.check_paths()?;
        let timeout = Time::ZERO + self.scenario.timeout;
        if let Some(late) = self.flows.iter().find(|flow| flow.last() > timeout) {
            let (name, at) = (&self.scenario.name, late.last());
            let what = format!("its timeout of {timeout} passes before a flow's {at}");
            return Err(format!("scenario {name}: {what}"));
        }
        self.check_chain()
    }

    /// Several paths lead from end to end, and each flow has an address on each of them.
    fn check_paths(&self) -> Result<(), String> {
        let (name, paths) = (&self.scenario.name, self.scenario.path_count());
        if paths == 1 {
            return Ok(());
        }
        if !self.proxies.is_empty() || self.tunnel.is_some() {
            return Err(format!(
                "proxies, tunnel: scenario {name} has {paths} paths, and middleboxes stand on one \
                 (hint: leave them out, as --treatment direct does)"
            ));
        }
        let most = FLOW_LIMIT / paths;
        if self.flows.len() > most {
            let count = self.flows.len();
            return Err(format!(
                "flows: {count}, where at most {most} can be over the {paths} paths of scenario \
                 {name} (hint: each takes an address on each path)"
            ));
        }
        Ok(())
    }

    /// The flow that is measured.
    #[must_use]
    pub fn measured(&self) -> &FlowJob {
        &self.flows[0]
    }
}

/// A 64-bit seed, written as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Seed(pub u64);

impl TryFrom<String> for Seed {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u64::from_str_radix(&text, 16) {
            Ok(value) if digits => Ok(Self(value)),
            _ => Err(format!("{text:?}: a seed is 16 hexadecimal digits")),
        }
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
