//! The verification of files that are transferred: each arrived whole, in the way that the test
//! case asks for.

mod stored;
mod wire;

use std::fs;
use std::io;

use self::wire::{Claim, TestCase};
use super::verifier::{Kind, ProofFailure, Verifier};
use bentpipe_endpoint::contract::RequestReport;

use crate::evidence::HopObservation;
use crate::job::{Role, TestCaseFacts};
use crate::schema::Outcome;
use crate::setup::FlowSetup;

/// Files that are all asked for at once, or the first of them before the others.
pub const KIND: Kind = Kind {
    verifiers: &[
        ("transfer", &TestCase::Transfer),
        ("handshake", &TestCase::Handshake),
        ("longrtt", &TestCase::Longrtt),
        ("multiplexing", &TestCase::Multiplexing),
        ("resumption", &TestCase::Resumption),
        ("zerortt", &TestCase::Zerortt),
        ("upload", &TestCase::Upload),
    ],
};

/// The outcome and its detail if a file that was asked for is missing or wrong.
pub fn arrived(setup: &FlowSetup) -> io::Result<Option<(Outcome, String)>> {
    of_these(setup, &setup.flow().requests)
}

/// The requests of which anything was stored.
pub fn stored(setup: &FlowSetup, requests: &[String]) -> Vec<String> {
    let downloads = setup.downloads();
    let is_there = |path: &&String| {
        let stored = downloads.join(path.trim_start_matches('/'));
        fs::symlink_metadata(stored).is_ok()
    };
    requests.iter().filter(is_there).cloned().collect()
}

/// The outcome and its detail if one of these files of a flow is missing or wrong.
pub fn of_these(setup: &FlowSetup, requests: &[String]) -> io::Result<Option<(Outcome, String)>> {
    stored::verify(requests, setup.www(), &setup.downloads())
}

impl Verifier for TestCase {
    fn agrees(&self, facts: TestCaseFacts) -> bool {
        let sender = match self {
            Self::Upload => Role::Client,
            _ => Role::Server,
        };
        let connections = match self {
            Self::Resumption | Self::Zerortt => 2,
            _ => 1,
        };
        (facts.sender, facts.connections) == (sender, connections)
    }

    fn arrived(
        &self,
        setup: &FlowSetup,
        _: &[RequestReport],
    ) -> io::Result<Option<(Outcome, String)>> {
        arrived(setup)
    }

    fn shown(
        &self,
        setup: &FlowSetup,
        hops: &[HopObservation],
        _: &[RequestReport],
    ) -> Result<(), ProofFailure> {
        let claim = Claim {
            testcase: *self,
            requests: setup.flow().requests.len(),
            size_bytes: setup.size_bytes(),
            round_trip: setup.job().hops()[0].rtt(),
        };
        claim.judge(&hops[0].connections)
    }
}
