//! `analysis.json`: what was in captures, and what it says, connection by connection.

use crate::connection::{Connection, Nanos, Protocol, Vantage};
use crate::durations::seconds;
use crate::findings::{Finding, Findings, View};
use crate::metrics::Milestones;
use crate::passive::{Passive, Spin};
use crate::{Captured, DecodingGap, Establishment, LedgerEntry, LinkFacts, Metrics};
use bentpipe_wire::quic::{End, InitialCredit, version_name};
use serde::Serialize;

use crate::windows::{CongestionWindows, Logged};

/// The number of the file's format. It is raised when what readers rely on changes.
const FORMAT: u32 = 1;

/// The content of `analysis.json`.
#[derive(Debug, Serialize)]
pub struct AnalysisFile {
    format: u32,
    /// Names of the captures, without folders.
    pub files: Vec<String>,
    /// The place at which the connection with the most packets was captured: "both", "client",
    /// "server" or "unknown".
    pub sides: &'static str,
    /// The parts of the captures that could not be decoded.
    pub undecoded: Vec<Undecoded>,
    /// The errors that ended the reading of captures early.
    pub errors: Vec<String>,
    /// The connections, by the time of their first packets.
    pub connections: Vec<ConnectionAnalysis>,
}

impl AnalysisFile {
    /// The file of these captures, in which no connections are yet.
    #[must_use]
    pub fn new(files: Vec<String>, captured: &Captured, errors: Vec<String>) -> Self {
        let undecodable = captured.undecodable.iter();
        let undecoded = undecodable.map(|(what, missing)| Undecoded {
            count: missing.count,
            what: what.clone(),
            first_frame: missing.first_frame,
        });
        let connections = captured.connections.iter();
        let largest = connections.max_by_key(|it| it.packets.len());
        Self {
            format: FORMAT,
            files,
            sides: largest.map_or("unknown", |it| sides(it.vantage)),
            undecoded: undecoded.collect(),
            errors,
            connections: Vec::new(),
        }
    }
}

/// The count of what was left out for one and the same reason.
#[derive(Debug, Serialize)]
pub struct Undecoded {
    /// The number of times that it happened.
    pub count: u64,
    /// The kind of the parts that were left out, and the reason.
    pub what: String,
    /// The first captured packet of which it holds, counted from 1 within its file.
    pub first_frame: u64,
}

/// The analysis of a connection.
#[derive(Debug, Serialize)]
pub struct ConnectionAnalysis {
    connection: usize,
    protocol: &'static str,
    /// The version of QUIC, if it was seen.
    version: Option<String>,
    client: String,
    server: String,
    /// As `sides`, of this connection.
    vantage: &'static str,
    /// In text: a JSON number would not hold the nanoseconds.
    start_unix_s: String,
    /// The correction subtracted from the server side's times, where clocks are certain to differ;
    /// else 0.
    server_clock_ahead_s: f64,
    packets: usize,
    /// The transport parameters of each end. Absent if no transport parameters were seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport_parameters: Option<InitialLimits>,
    /// How a QUIC connection was established.
    #[serde(skip_serializing_if = "Option::is_none")]
    establishment: Option<Establishment>,
    metrics: Metrics,
    /// Measures that need no secrets.
    passive: Passive,
    /// Whether nothing of its data could be decrypted.
    sealed: bool,
    events: Vec<Event>,
    findings: Vec<Finding>,
    /// Absent if no endpoint logged its congestion window.
    #[serde(skip_serializing_if = "Option::is_none")]
    qlog: Option<Logged>,
}

/// The initial flow-control limits of both ends, in bytes, under their names in RFC 9000 section
/// 18.2.
#[derive(Debug, Serialize)]
struct InitialLimits {
    client: Option<InitialCredit>,
    server: Option<InitialCredit>,
}

impl InitialLimits {
    fn of(connection: &Connection) -> Option<Self> {
        let [client, server] = connection.initial_credit;
        (client.is_some() || server.is_some()).then_some(Self { client, server })
    }
}

/// The facts that are known of connections beside the captures.
#[derive(Debug)]
pub struct SideInformation {
    /// The facts of the path that are known.
    pub link: LinkFacts,
    /// The congestion windows that endpoints logged.
    pub windows: CongestionWindows,
}

/// Something that happened once.
#[derive(Debug, Serialize)]
struct Event {
    name: &'static str,
    /// On the time axis of `packets.parquet`: since the connection's first packet was seen.
    at_s: f64,
}

impl ConnectionAnalysis {
    /// Analyses the connection with that number, whose [ledger](Connection::ledger) is `entries`,
    /// and whose spin bit said `spin`.
    #[must_use]
    pub fn new(
        number: usize,
        connection: &Connection,
        entries: &[LedgerEntry],
        spin: &Spin,
        known: &SideInformation,
    ) -> Self {
        const SECOND: u64 = 1_000_000_000;
        let findings = Findings::of(&View {
            connection,
            ledger: entries,
            link: &known.link,
            windows: [End::Client, End::Server].map(|end| known.windows.of(number, end)),
        });
        let start = connection.start;
        let [client, server] = connection.ends.map(|end| end.to_string());
        let (protocol, version) = match connection.protocol {
            Protocol::Quic(0) => ("quic", None), // its handshake was not seen
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
            transport_parameters: InitialLimits::of(connection),
            establishment: Establishment::is_seen(connection)
                .then(|| Establishment::of(connection, entries)),
            metrics: Metrics::of(connection, entries, &known.link),
            passive: Passive::of(connection, spin),
            sealed: DecodingGap::of([connection]).is_sealed(),
            events: events(
                &Milestones::of(connection, entries, &known.link),
                findings.slow_start_end,
            ),
            findings: findings.all,
            qlog: known.windows.logged(number),
        }
    }
}

/// The word for where a connection was captured.
fn sides(vantage: Vantage) -> &'static str {
    match vantage {
        Vantage::Between => "unknown",
        Vantage::Both | Vantage::At(_) => vantage.name(),
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
