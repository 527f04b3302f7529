//! The verification of live streams: each segment is whole, at one of its rates.

use std::fs;
use std::io;

use bentpipe_endpoint::HTTP1_CONNECTIONS;
use bentpipe_endpoint::contract::RequestReport;

use super::verifier::{Kind, ProofFailure, Verifier};
use super::{files, page};
use crate::evidence::DecodedConnection;
use crate::job::{Role, TestCaseFacts};
use crate::schema::Outcome;
use crate::setup::FlowSetup;

/// Segments are asked for as they are made.
#[derive(Debug, Clone, Copy)]
struct Live;

/// Live streams.
pub const KIND: Kind = Kind {
    verifiers: &[("live", &Live)],
};

impl Verifier for Live {
    fn agrees(&self, facts: TestCaseFacts) -> bool {
        (facts.sender, facts.connections) == (Role::Server, 1)
    }

    fn arrived(&self, setup: &FlowSetup) -> io::Result<Option<(Outcome, String)>> {
        let downloads = setup.downloads();
        let is_there = |path: &&String| {
            let stored = downloads.join(path.trim_start_matches('/'));
            fs::symlink_metadata(stored).is_ok()
        };
        let mut played = Vec::new();
        for (number, all) in setup.flow().segments().enumerate() {
            let stored: Vec<&String> = all.iter().filter(is_there).collect();
            match stored[..] {
                [one] => played.push(one.clone()),
                [] => {
                    let what = format!("segment {number}: nothing was stored");
                    return Ok(Some((Outcome::MissingFile, what)));
                }
                _ => {
                    let what = format!("segment {number}: it came at {} rates", stored.len());
                    return Ok(Some((Outcome::Unproven, what)));
                }
            }
        }
        files::of_these(setup, &played)
    }

    fn is_told(&self, requests: &[RequestReport]) -> bool {
        let mut asked = requests.iter().filter(|it| it.asked_ns.is_some());
        requests.iter().any(|it| it.asked_ns.is_some())
            && asked.all(|it| it.first_byte_ns.is_some() && it.last_byte_ns.is_some())
    }

    fn shown(&self, setup: &FlowSetup, seen: &[DecodedConnection]) -> Result<(), ProofFailure> {
        let carried = page::carried(seen).len();
        let (expected, most) = match setup.flow().alpn.as_str() {
            "http/1.1" => ("one to six connections", HTTP1_CONNECTIONS),
            _ => ("one connection", 1),
        };
        if (1..=most).contains(&carried) {
            return Ok(());
        }
        Err(ProofFailure::Other(format!(
            "expected {expected} with replies, saw {carried} that carry anything"
        )))
    }
}
