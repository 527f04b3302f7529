//! The verification of pages: every resource is whole, and came over as many connections as the
//! protocol has.

use std::cmp::Reverse;
use std::io;
use std::time::Duration;

use bentpipe_analysis::connection::{Frame, Kind as PacketKind, Packet, Protocol};
use bentpipe_analysis::metrics::arrivals;
use bentpipe_endpoint::HTTP1_CONNECTIONS;
use bentpipe_endpoint::contract::RequestReport;
use bentpipe_wire::quic::{End, PacketType};

use bentpipe_units::Time;

use super::files;
use super::resumption::{early, resumed};
use super::verifier::{CLOCKS, Kind, ProofFailure, UNTOLD, Verifier, unless};
use crate::evidence::{DecodedConnection, Drawing, HopObservation};
use crate::job::{Role, TestCaseFacts};
use crate::schema::Outcome;
use crate::setup::FlowSetup;

/// A visit of a page: what one reply holds leads to further requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visit {
    /// Nothing is left of one before.
    First,
    /// The ticket of one before is there.
    Resumed,
    /// The same, and what is asked for first is early data.
    Early,
}

/// Pages.
pub const KIND: Kind = Kind {
    verifiers: &[
        ("page", &Visit::First),
        ("page-resumption", &Visit::Resumed),
        ("page-zerortt", &Visit::Early),
    ],
};

/// HTTP/2 whose responses name HTTP/3 as an alternative (`endpoints/contract/browsers.md`).
const UPGRADE: &str = "h2-h3";
const TOO_EARLY: &str = "expected a ticket and no early data; saw a request in it";

/// Whether the client says how it drew the page: then it goes by its own rules
/// (`endpoints/contract/browsers.md`).
fn is_browser(setup: &FlowSetup) -> bool {
    let said = setup.report().map(|it| Drawing::read(&it, Duration::ZERO));
    said.and_then(Result::ok)
        .is_some_and(|it| it.moments.are_said())
}

/// Bytes of replies that each connection carried that carried any. Browsers open further ones where
/// the first is slow to come about, and do not use them.
pub fn carried<'a>(seen: impl IntoIterator<Item = &'a DecodedConnection>) -> Vec<u64> {
    let carried = seen.into_iter().map(|it| {
        let came = arrivals(&it.connection, End::Server);
        came.iter().map(|(_, bytes)| bytes).sum::<u64>()
    });
    carried.filter(|bytes| *bytes > 0).collect()
}

/// Whether a visit has as many connections as its protocol: of a page of `bytes` bytes.
fn connections(setup: &FlowSetup, carried: &[u64], bytes: u64) -> Result<(), ProofFailure> {
    let (expected, is_right) = match setup.flow().alpn.as_str() {
        // Which it takes as it likes.
        "http/1.1" if is_browser(setup) => ("connections that carry replies", !carried.is_empty()),
        "http/1.1" => (
            "one to six connections that carry replies",
            (1..=HTTP1_CONNECTIONS).contains(&carried.len()),
        ),
        _ => (
            "one connection that carries all",
            carried.iter().any(|it| *it >= bytes),
        ),
    };
    if is_right {
        return Ok(());
    }
    let seen = carried.len();
    Err(ProofFailure::Other(format!(
        "expected {expected}, saw {seen} that carry anything"
    )))
}

/// Whether a page that is upgraded began over TCP, and came whole over all connections together.
fn upgraded(seen: &[DecodedConnection], bytes: u64) -> Result<(), ProofFailure> {
    let carrying = || seen.iter().filter(|it| !carried([*it]).is_empty());
    let first = carrying().next().map(|it| it.connection.protocol);
    if first != Some(Protocol::Tcp) {
        return Err(other(
            "expected a page that begins over TCP; its first reply did not come over it".to_owned(),
        ));
    }
    let sum: u64 = carried(seen).iter().sum();
    if sum < bytes {
        return Err(other(format!(
            "expected {bytes} bytes over all connections, saw {sum}"
        )));
    }
    Ok(())
}

/// Whether a request went in a 0-RTT packet, and not just what HTTP/3 says first.
fn asks_early(second: &DecodedConnection) -> bool {
    let connection = &second.connection;
    let early = |it: &&Packet| it.kind == PacketKind::Quic(PacketType::ZeroRtt);
    let mut frames = connection
        .packets
        .iter()
        .filter(early)
        .flat_map(|it| connection.frames(it));
    frames.any(|it| matches!(it, Frame::Stream { id, .. } if id.is_multiple_of(4)))
}

/// Whether nothing was asked for in early data, of QUIC or of TLS.
fn not_early(of: &DecodedConnection) -> Result<(), ProofFailure> {
    let bytes = of.establishment.zero_rtt_bytes;
    let mut packets = of.connection.packets.iter();
    let has_early = packets.any(|it| it.kind == PacketKind::Quic(PacketType::ZeroRtt));
    if has_early && bytes.is_none() {
        return Err(ProofFailure::Sealed(
            "what was sent in 0-RTT could not be decrypted",
        ));
    }
    let is_tcp = of.connection.protocol == Protocol::Tcp;
    if asks_early(of) || (is_tcp && bytes.is_some_and(|it| it > 0)) {
        return Err(other(TOO_EARLY.to_owned()));
    }
    Ok(())
}

/// The connections of a later visit, that first which it is held to: over HTTP/1.1 the first that
/// carried anything, else the one that carried most.
fn visit<'a>(setup: &FlowSetup, mut all: Vec<&'a DecodedConnection>) -> Vec<&'a DecodedConnection> {
    if setup.flow().alpn != "http/1.1" {
        all.sort_by_key(|it| Reverse(carried([*it]).first().copied()));
    }
    all
}

/// Whether a later visit has as many connections as its protocol, and they carried its page: over
/// HTTP/1.1 together, else the first of them, which is the one that is measured.
fn all_carried(setup: &FlowSetup, visit: &[&DecodedConnection]) -> Result<(), ProofFailure> {
    let bytes = setup.measured_bytes();
    if setup.flow().alpn != "http/1.1" {
        return connections(setup, &carried(visit[..1].iter().copied()), bytes);
    }
    let carried = carried(visit.iter().copied());
    connections(setup, &carried, bytes)?;
    let sum: u64 = carried.iter().sum();
    if sum < bytes {
        return Err(other(format!(
            "expected {bytes} bytes on the later visit, saw {sum}"
        )));
    }
    Ok(())
}

/// The first resource of a page that was requested before its visit began, if any was.
fn asked_before<'a>(setup: &'a FlowSetup, said: &[RequestReport], began: Time) -> Option<&'a str> {
    let began = Duration::from_nanos(began.as_nanos());
    let paths = setup.flow().testcase_facts.measured(&setup.flow().requests);
    let is_early = |it: &RequestReport| {
        it.asked_ns
            .is_some_and(|at| Duration::from_nanos(at) + CLOCKS < began)
    };
    let early = said.iter().position(is_early)?;
    paths.get(early).map(String::as_str)
}

fn other(what: String) -> ProofFailure {
    ProofFailure::Other(what)
}

/// The failure where there are not two visits.
fn unvisited(seen: &[DecodedConnection]) -> ProofFailure {
    let made = seen.iter().filter(|it| it.establishment.complete).count();
    let begun = match seen.len() {
        1 => "1 connection begin".to_owned(),
        many => format!(
            "{many} connections begin, of which {made} completed their handshake, none of them \
             behind the first reply"
        ),
    };
    ProofFailure::Other(format!(
        "expected an earlier visit and one with its ticket; saw {begun}"
    ))
}

impl Verifier for Visit {
    fn agrees(&self, facts: TestCaseFacts) -> bool {
        let connections = if *self == Self::First { 1 } else { 2 };
        (facts.sender, facts.connections) == (Role::Server, connections)
    }

    fn arrived(
        &self,
        setup: &FlowSetup,
        _: &[RequestReport],
    ) -> io::Result<Option<(Outcome, String)>> {
        files::arrived(setup)
    }

    fn untold(&self, said: &[RequestReport]) -> Option<String> {
        let is_timed = |it: &RequestReport| {
            [it.asked_ns, it.first_byte_ns, it.last_byte_ns]
                .iter()
                .all(Option::is_some)
        };
        unless(said.iter().all(is_timed), UNTOLD)
    }

    fn shown(
        &self,
        setup: &FlowSetup,
        hops: &[HopObservation],
        said: &[RequestReport],
    ) -> Result<(), ProofFailure> {
        let seen = &hops[0].connections;
        if setup.flow().alpn == UPGRADE {
            return upgraded(seen, setup.size_bytes());
        }
        if *self == Self::First {
            return connections(setup, &carried(seen), setup.size_bytes());
        }
        let (earlier, later) = hops[0].earlier_and_later();
        let visit = visit(setup, hops[0].carried_later());
        let ([second, ..], Some(began)) = (&visit[..], later.iter().map(|it| it.start()).min())
        else {
            return Err(unvisited(seen));
        };
        if carried(earlier).is_empty() {
            return Err(other(
                "expected a reply on the earlier visit, saw none".to_owned(),
            ));
        }
        let said = setup.flow().testcase_facts.measured(said);
        if let Some(path) = asked_before(setup, said, began) {
            return Err(other(format!(
                "expected the page to be asked for on the later visit; {path} was before that began"
            )));
        }
        all_carried(setup, &visit)?;
        resumed(second)?;
        if *self == Self::Resumed {
            return visit.iter().try_for_each(|it| not_early(it));
        }
        early(second)?;
        if !asks_early(second) {
            return Err(other("expected a request in 0-RTT; saw none".to_owned()));
        }
        Ok(())
    }
}
