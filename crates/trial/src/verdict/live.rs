//! The verification of live streams: each segment is whole, at one of its rates.

use std::io;
use std::time::Duration;

use bentpipe_endpoint::contract::RequestReport;
use bentpipe_endpoint::{HTTP1_CONNECTIONS, LiveStream};

use super::verifier::{Kind, ProofFailure, UNTOLD, Verifier, unless};
use super::{files, page};
use crate::evidence::HopObservation;
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

    fn arrived(
        &self,
        setup: &FlowSetup,
        _: &[RequestReport],
    ) -> io::Result<Option<(Outcome, String)>> {
        for (number, all) in (1..).zip(setup.flow().segments()) {
            let stored = files::stored(setup, all);
            if let Some(wrong) = files::of_these(setup, &stored)? {
                return Ok(Some(wrong));
            }
            let (outcome, what) = match stored.len() {
                1 => continue,
                0 => (Outcome::MissingFile, "nothing was stored".to_owned()),
                rates => (Outcome::Unproven, format!("it came at {rates} rates")),
            };
            return Ok(Some((outcome, format!("segment {number}: {what}"))));
        }
        Ok(None)
    }

    fn untold(&self, said: &[RequestReport]) -> Option<String> {
        let is_timed = |it: &RequestReport| it.first_byte_ns.is_some() && it.last_byte_ns.is_some();
        let mut asked = said.iter().filter(|it| it.asked_ns.is_some());
        let is_told = asked.clone().next().is_some() && asked.all(is_timed);
        unless(is_told, UNTOLD)
    }

    fn shown(
        &self,
        setup: &FlowSetup,
        hops: &[HopObservation],
        _: &[RequestReport],
    ) -> Result<(), ProofFailure> {
        let carried = page::carried(&hops[0].connections).len();
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

    fn disobeyed(&self, setup: &FlowSetup, said: &[RequestReport]) -> Option<String> {
        let flow = setup.flow();
        disobeyed(flow.live.as_ref()?, said, flow.start_ns)
    }
}

/// The violation of the contract in a client's own report: each segment is requested once, when it
/// is made and the one before has ended. It did not begin before `start_ns`.
fn disobeyed(stream: &LiveStream, requests: &[RequestReport], start_ns: u64) -> Option<String> {
    let mut before = start_ns;
    for (segment, all) in (0..).zip(requests.chunks(stream.rates_bps.len())) {
        let asked: Vec<_> = all
            .iter()
            .filter_map(|it| Some((it.asked_ns?, it)))
            .collect();
        let [(at, one)] = asked[..] else {
            let times = asked.len();
            return Some(format!(
                "segment {}: it was asked for {times} times",
                segment + 1
            ));
        };
        let made = Duration::from_nanos(start_ns) + stream.made(segment);
        let what = if Duration::from_nanos(at) < made {
            "before it was made"
        } else if at < before {
            "before the last one had ended"
        } else {
            before = one.last_byte_ns.unwrap_or(u64::MAX);
            continue;
        };
        return Some(format!("segment {}: it was asked for {what}", segment + 1));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of segments at two rates, of which the first is asked for: when that is, and when
    /// it has come, in seconds.
    fn requests(times: &[(u64, u64)]) -> Vec<RequestReport> {
        let one = |&(asked, last): &(u64, u64)| {
            let asked = RequestReport {
                asked_ns: Some(asked * 1_000_000_000),
                first_byte_ns: Some(last * 1_000_000_000),
                last_byte_ns: Some(last * 1_000_000_000),
                ..RequestReport::default()
            };
            [asked, RequestReport::default()]
        };
        times.iter().flat_map(one).collect()
    }

    fn wrong(requests: &[RequestReport]) -> Option<String> {
        let stream = LiveStream {
            segment_ms: 2000,
            initial_segments: 2,
            rates_bps: vec![1, 2],
        };
        disobeyed(&stream, requests, 1_000_000_000)
    }

    #[test]
    fn each_segment_is_asked_for_once_in_its_time() {
        let good = requests(&[(1, 2), (2, 2), (3, 4), (5, 6)]);
        assert_eq!(wrong(&good), None);
        let early = requests(&[(1, 1), (1, 2), (2, 3)]);
        assert!(
            wrong(&early).is_some_and(|it| it == "segment 3: it was asked for before it was made")
        );
        let at_once = requests(&[(1, 3), (2, 3)]);
        let said = wrong(&at_once);
        assert!(said.is_some_and(|it| it.ends_with("before the last one had ended")));
        let mut twice = good.clone();
        twice[3] = twice[2].clone();
        assert!(wrong(&twice).is_some_and(|it| it == "segment 2: it was asked for 2 times"));
        let mut never = good;
        never[0] = RequestReport::default();
        assert!(wrong(&never).is_some_and(|it| it == "segment 1: it was asked for 0 times"));
    }

    #[test]
    fn a_client_says_when_what_it_asked_for_came() {
        let mut said = requests(&[(1, 2), (2, 3)]);
        assert_eq!(Live.untold(&said), None);
        said[2].last_byte_ns = None;
        assert_eq!(Live.untold(&said).as_deref(), Some(UNTOLD));
        assert!(Live.untold(&[RequestReport::default()]).is_some());
    }
}
