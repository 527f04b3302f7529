//! The verification of files that are transferred: each arrived whole, in the way that the test case asks
//! for.

mod stored;
mod wire;

use std::io;

use self::wire::Claim;
use super::verifier::{ProofFailure, Verifier};
use crate::evidence::DecodedConnection;
use crate::schema::Outcome;
use crate::setup::FlowSetup;

/// A test case of section 2 of the contract that transfers files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestCase {
    Transfer,
    Handshake,
    Longrtt,
    Multiplexing,
    Resumption,
    Zerortt,
    Upload,
}

impl TestCase {
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "transfer" => Self::Transfer,
            "handshake" => Self::Handshake,
            "longrtt" => Self::Longrtt,
            "multiplexing" => Self::Multiplexing,
            "resumption" => Self::Resumption,
            "zerortt" => Self::Zerortt,
            "upload" => Self::Upload,
            _ => return None,
        })
    }
}

/// The verifier of a test case, if it transfers files.
pub fn verifier(testcase: &str) -> Option<Box<dyn Verifier>> {
    TestCase::of_name(testcase).map(|it| Box::new(it) as Box<dyn Verifier>)
}

impl Verifier for TestCase {
    fn arrived(&self, setup: &FlowSetup) -> io::Result<Option<(Outcome, String)>> {
        stored::verify(&setup.flow().requests, setup.www(), &setup.downloads())
    }

    fn shown(&self, setup: &FlowSetup, seen: &[DecodedConnection]) -> Result<(), ProofFailure> {
        let claim = Claim {
            testcase: *self,
            requests: setup.flow().requests.len(),
            size_bytes: setup.size_bytes(),
            round_trip: setup.job().hops()[0].rtt(),
        };
        claim.judge(seen)
    }
}
