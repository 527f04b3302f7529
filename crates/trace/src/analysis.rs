//! `analysis.json`: what was in captures, and what it says, connection by connection.

use bentpipe_trace::connection::{Connection, Nanos, Protocol, Vantage};
use bentpipe_trace::findings::{Finding, Findings, View};
use bentpipe_trace::metrics::{Milestones, seconds};
use bentpipe_trace::quic::{End, InitialCredit};
use bentpipe_trace::{Entry, Establishment, LinkFacts, Metrics};
use serde::Serialize;

use crate::windows::{Logged, Windows};

/// The file. `format` is raised when what readers rely on changes.
#[derive(Debug, Serialize)]
pub struct Analysis {
    pub format: u32,
    /// Names of the captures, without folders.
    pub files: Vec<String>,
    /// Where the connection with the most packets was captured: "both", "client", "server" or "unknown".
    pub sides: &'static str,
    pub undecoded: Vec<Undecoded>,
    /// Why captures could not be read to their ends.
    pub errors: Vec<String>,
    pub connections: Vec<Analyzed>,
}

/// What was left out for one and the same reason.
#[derive(Debug, Serialize)]
pub struct Undecoded {
    pub count: u64,
    pub what: String,
    /// Counted from 1 within its file.
    pub first_frame: u64,
}

/// A connection.
#[derive(Debug, Serialize)]
pub struct Analyzed {
    connection: usize,
    protocol: &'static str,
    /// Of QUIC.
    version: Option<String>,
    client: String,
    server: String,
    /// As `sides`, of this connection.
    vantage: &'static str,
    /// In text: a JSON number would not hold the nanoseconds.
    start_unix_s: String,
    /// By how much the server side's times were put back, where clocks are certain to differ; else 0.
    server_clock_ahead_s: f64,
    packets: usize,
    /// What each end gave its peer. Absent if no transport parameters were seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport_parameters: Option<Given>,
    /// Of QUIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    establishment: Option<Establishment>,
    metrics: Metrics,
    events: Vec<Event>,
    findings: Vec<Finding>,
    /// Absent if no endpoint logged its congestion window.
    #[serde(skip_serializing_if = "Option::is_none")]
    qlog: Option<Logged>,
}

/// The initial flow-control limits of both ends, in bytes, under their names in RFC 9000 section 18.2.
#[derive(Debug, Serialize)]
struct Given {
    client: Option<InitialCredit>,
    server: Option<InitialCredit>,
}

impl Given {
    fn of(connection: &Connection) -> Option<Self> {
        let [client, server] = connection.initial_credit;
        (client.is_some() || server.is_some()).then_some(Self { client, server })
    }
}

/// What is known of connections beside the captures.
#[derive(Debug)]
pub struct Beside {
    pub facts: LinkFacts,
    pub windows: Windows,
}

/// Something that happened once.
#[derive(Debug, Serialize)]
struct Event {
    name: &'static str,
    /// On the time axis of `packets.parquet`: since the connection's first packet was seen.
    at_s: f64,
}

impl Analyzed {
    /// Of the connection with that number, whose ledger is `entries`.
    pub fn new(number: usize, connection: &Connection, entries: &[Entry], beside: &Beside) -> Self {
        const SECOND: u64 = 1_000_000_000;
        let findings = Findings::of(&View {
            connection,
            ledger: entries,
            link: &beside.facts,
            windows: [End::Client, End::Server].map(|end| beside.windows.of(number, end)),
        });
        let start = connection.start;
        let [client, server] = connection.ends.map(|end| end.to_string());
        let (protocol, version) = match connection.protocol {
            Protocol::Quic(version) => ("quic", Some(version_name(version))),
            Protocol::Tcp => ("tcp", None),
        };
        Self {
            connection: number,
            protocol,
            version,
            client,
            server,
            vantage: sides(connection.vantage),
            start_unix_s: format!("{}.{:09}", start / SECOND, start % SECOND),
            server_clock_ahead_s: seconds(connection.clock_ahead),
            packets: connection.packets.len(),
            transport_parameters: Given::of(connection),
            establishment: Establishment::of(connection, entries),
            metrics: Metrics::of(connection, entries, &beside.facts),
            events: events(
                &Milestones::of(connection, entries, &beside.facts),
                findings.slow_start_end,
            ),
            findings: findings.all,
            qlog: beside.windows.logged(number),
        }
    }
}

/// The word for where a connection was captured.
pub fn sides(vantage: Vantage) -> &'static str {
    match vantage {
        Vantage::Between => "unknown",
        Vantage::Both | Vantage::At(_) => vantage.name(),
    }
}

fn version_name(version: u32) -> String {
    match version {
        1 => "1".to_owned(),
        0x6b33_43cf => "2".to_owned(),
        other => format!("0x{other:08x}"),
    }
}

fn events(times: &Milestones, slow_start_end: Option<Nanos>) -> Vec<Event> {
    let event = |name, at: Option<Nanos>| {
        at.map(|at| Event {
            name,
            at_s: seconds(at),
        })
    };
    let events = [
        event("handshake_complete", times.handshake_complete),
        event("first_byte", times.first_byte),
        event("slow_start_end", slow_start_end),
        event("last_byte", times.last_byte),
    ];
    events.into_iter().flatten().collect()
}
