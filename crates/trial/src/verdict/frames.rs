//! The verification of frames with deadlines: what came whole is what was served, and they came to their end.

use std::io;

use bentpipe_endpoint::contract::RequestReport;

use super::verifier::{Kind, ProofFailure, Verifier};
use super::{FlowEnd, Verdict, files};
use crate::evidence::DecodedConnection;
use crate::job::{Role, TestCaseFacts};
use crate::schema::Outcome;
use crate::setup::FlowSetup;

/// The server makes frames, and gives up those whose time is over.
#[derive(Debug, Clone, Copy)]
struct Frames;

/// Frames with deadlines.
pub const KIND: Kind = Kind {
    verifiers: &[("frames", &Frames)],
};

impl Verifier for Frames {
    fn agrees(&self, facts: TestCaseFacts) -> bool {
        (facts.sender, facts.connections) == (Role::Server, 1)
    }

    fn arrived(&self, setup: &FlowSetup) -> io::Result<Option<(Outcome, String)>> {
        files::of_these(setup, &files::stored(setup, &setup.flow().requests))
    }

    fn unfinished(&self, verdict: &Verdict) -> Option<(Outcome, String)> {
        let is_at_end = verdict.end == Some(FlowEnd::Done) && verdict.client.error.is_none();
        let what = "the frames did not come to their end".to_owned();
        (!is_at_end).then_some((Outcome::MissingFile, what))
    }

    fn is_told(&self, requests: &[RequestReport]) -> bool {
        let is_timed = |it: &RequestReport| it.asked_ns.is_some() == it.last_byte_ns.is_some();
        requests.iter().any(|it| it.bytes > 0) && requests.iter().all(is_timed)
    }

    fn shown(&self, _: &FlowSetup, seen: &[DecodedConnection]) -> Result<(), ProofFailure> {
        if seen.len() == 1 {
            return Ok(());
        }
        Err(ProofFailure::Other(format!(
            "expected one connection, saw {}",
            seen.len()
        )))
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_endpoint::contract::Bye;
    use bentpipe_units::Time;

    use super::*;

    #[test]
    fn frames_are_to_come_to_their_end() {
        let verdict = |end, error: Option<&str>| {
            let client = Bye {
                error: error.map(str::to_owned),
                ..Bye::default()
            };
            Verdict::of_end(end, client, Time::ZERO)
        };
        assert_eq!(Frames.unfinished(&verdict(FlowEnd::Done, None)), None);
        for cut in [
            verdict(FlowEnd::TimeLimit, None),
            verdict(FlowEnd::Done, Some("gone")),
        ] {
            let outcome = Frames.unfinished(&cut).map(|(outcome, _)| outcome);
            assert_eq!(outcome, Some(Outcome::MissingFile));
        }
    }

    #[test]
    fn a_frame_that_came_has_two_times() {
        let came = RequestReport {
            asked_ns: Some(1),
            bytes: 7,
            last_byte_ns: Some(2),
            ..RequestReport::default()
        };
        let lost = RequestReport::default();
        assert!(Frames.is_told(&[came.clone(), lost.clone()]));
        let half = RequestReport {
            asked_ns: None,
            ..came
        };
        assert!(!Frames.is_told(&[half]) && !Frames.is_told(&[lost]));
    }
}
