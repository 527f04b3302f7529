//! The verification of pages: every resource is whole, and came over as many connections as the protocol has.

use std::io;

use bentpipe_endpoint::HTTP1_CONNECTIONS;
use bentpipe_endpoint::contract::RequestReport;

use super::files;
use super::verifier::{Kind, ProofFailure, Verifier};
use crate::evidence::DecodedConnection;
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
        let made = seen.iter().filter(|it| it.establishment.complete).count();
        let (expected, most) = match setup.flow().alpn.as_str() {
            "http/1.1" => ("one to six connections", HTTP1_CONNECTIONS),
            _ => ("one connection", 1),
        };
        if (1..=most).contains(&made) {
            return Ok(());
        }
        Err(ProofFailure::Other(format!(
            "expected {expected}, saw {made}"
        )))
    }
}
