//! The verification of pages: every resource is whole, and came over as many connections as the protocol has.

use std::io;
use std::time::Duration;

use bentpipe_analysis::metrics::arrivals;
use bentpipe_endpoint::HTTP1_CONNECTIONS;
use bentpipe_endpoint::contract::RequestReport;
use bentpipe_wire::quic::End;

use super::files;
use super::verifier::{Kind, ProofFailure, Verifier};
use crate::evidence::{DecodedConnection, Moments};
use crate::job::{Role, TestCaseFacts};
use crate::schema::Outcome;
use crate::setup::FlowSetup;

/// What one reply holds leads to further requests.
#[derive(Debug, Clone, Copy)]
struct Page;

/// Pages.
pub const KIND: Kind = Kind {
    verifiers: &[("page", &Page)],
};

/// Whether the client says how it drew the page: then it goes by its own rules (contract, section 3).
fn is_browser(setup: &FlowSetup) -> bool {
    let said = setup.report().map(|it| Moments::read(&it, Duration::ZERO));
    said.and_then(Result::ok).is_some_and(Moments::are_said)
}

/// Bytes of replies that each connection carried that carried any. Browsers open further ones where the first is slow
/// to come about, and do not use them.
pub fn carried(seen: &[DecodedConnection]) -> Vec<u64> {
    let carried = seen.iter().map(|it| {
        let came = arrivals(&it.connection, End::Server);
        came.iter().map(|(_, bytes)| bytes).sum::<u64>()
    });
    carried.filter(|bytes| *bytes > 0).collect()
}

impl Verifier for Page {
    fn agrees(&self, facts: TestCaseFacts) -> bool {
        (facts.sender, facts.connections) == (Role::Server, 1)
    }

    fn arrived(&self, setup: &FlowSetup) -> io::Result<Option<(Outcome, String)>> {
        files::arrived(setup)
    }

    fn is_told(&self, requests: &[RequestReport]) -> bool {
        let is_timed = |it: &RequestReport| {
            [it.asked_ns, it.first_byte_ns, it.last_byte_ns]
                .iter()
                .all(Option::is_some)
        };
        !requests.is_empty() && requests.iter().all(is_timed)
    }

    fn shown(&self, setup: &FlowSetup, seen: &[DecodedConnection]) -> Result<(), ProofFailure> {
        let carried = carried(seen);
        let (expected, is_right) = match setup.flow().alpn.as_str() {
            // Which it takes as it likes.
            "http/1.1" if is_browser(setup) => {
                ("connections that carry replies", !carried.is_empty())
            }
            "http/1.1" => (
                "one to six connections that carry replies",
                (1..=HTTP1_CONNECTIONS).contains(&carried.len()),
            ),
            _ => (
                "one connection that carries all",
                carried.iter().any(|bytes| *bytes >= setup.size_bytes()),
            ),
        };
        if is_right {
            return Ok(());
        }
        Err(ProofFailure::Other(format!(
            "expected {expected}, saw {} that carry anything",
            carried.len()
        )))
    }
}
