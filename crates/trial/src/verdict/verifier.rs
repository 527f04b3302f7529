//! A verifier: whether the wire and the files show what a workload asks for.

use std::io;
use std::time::Duration;

use bentpipe_endpoint::contract::RequestReport;

use super::Verdict;
use crate::evidence::{DecodedConnection, HopObservation};
use crate::job::{FlowJob, TestCaseFacts};
use crate::schema::Outcome;
use crate::setup::FlowSetup;

/// The most by which times of the programs and of the wire may differ in real time, where each has
/// read the machine's clock once and counted on from there.
pub const CLOCKS: Duration = Duration::from_millis(1);

/// A kind of workload.
pub(crate) struct Kind {
    /// Its test cases, and the verifier of each.
    pub verifiers: &'static [(&'static str, &'static dyn Verifier)],
}

/// The reason why nothing was proved.
#[derive(Debug, PartialEq, Eq)]
pub enum ProofFailure {
    /// The wire shows something else: what was expected, and what was seen.
    Other(String),
    /// The packets that would prove it could not be decrypted.
    Sealed(&'static str),
}

/// The verifier of a workload: it says whether what was asked for came.
pub(crate) trait Verifier: Sync {
    /// Whether a job's facts are those that it goes by.
    fn agrees(&self, facts: TestCaseFacts) -> bool;

    /// The outcome and its detail if what arrived, of which the client says this, is missing or
    /// wrong.
    fn arrived(
        &self,
        setup: &FlowSetup,
        said: &[RequestReport],
    ) -> io::Result<Option<(Outcome, String)>>;

    /// The error of a client that does not report what measures need.
    fn untold(&self, said: &[RequestReport]) -> Option<String> {
        let is_told = said.iter().all(|it| it.last_byte_ns.is_some());
        unless(is_told, UNTOLD)
    }

    /// The outcome and its detail if something is missing at the end that files alone do not show.
    fn unfinished(&self, verdict: &Verdict) -> Option<(Outcome, String)> {
        let _ = verdict;
        None
    }

    /// The rule of the test case that the programs broke, by what the client says, if they broke
    /// one.
    fn disobeyed(&self, setup: &FlowSetup, said: &[RequestReport]) -> Option<String> {
        let _ = (setup, said);
        None
    }

    /// Whether the wire shows what the test case asks for, and does not belie the client; `hops`
    /// are from the client to the server. All has arrived when this is asked.
    fn shown(
        &self,
        setup: &FlowSetup,
        hops: &[HopObservation],
        said: &[RequestReport],
    ) -> Result<(), ProofFailure>;
}

/// Words for a client that does not report when what it asked for arrived.
pub(crate) const UNTOLD: &str = "every byte arrived, but the client does not report when";

/// The text `what`, unless `holds`.
pub(crate) fn unless(holds: bool, what: &str) -> Option<String> {
    (!holds).then(|| what.to_owned())
}

/// The error of a client of a page, a live stream or frames that does not report on each request.
pub(crate) fn unreported(flow: &FlowJob, said: &[RequestReport]) -> Option<String> {
    let [asked, said] = [flow.requests.len(), said.len()];
    let is_told = !flow.is_reported() || asked == said;
    unless(
        is_told,
        &format!("the client reports on {said} of {asked} requests"),
    )
}

/// The one connection that was completed.
pub(crate) fn only_one(seen: &[DecodedConnection]) -> Result<&DecodedConnection, ProofFailure> {
    match &completed(seen)[..] {
        [only] => Ok(only),
        made => Err(miscounted("one connection", made, seen)),
    }
}

/// The connections that were completed.
pub(crate) fn completed(seen: &[DecodedConnection]) -> Vec<&DecodedConnection> {
    let made = seen.iter().filter(|it| it.establishment.complete);
    made.collect()
}

/// The failure of a proof that has more connections than `expected`, or fewer.
pub(crate) fn miscounted(
    expected: &str,
    made: &[&DecodedConnection],
    seen: &[DecodedConnection],
) -> ProofFailure {
    let begun = match seen.len() - made.len() {
        0 => String::new(),
        begun => format!(", and {begun} of which the client never sent the end of the handshake"),
    };
    ProofFailure::Other(format!("expected {expected}, saw {}{begun}", made.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A flow of two frames, or of two files.
    fn flow(is_of_frames: bool) -> FlowJob {
        let program = json!({"name": "noq", "command": []});
        let facts = json!({"sender": "server", "connections": 1, "round_trips": 2,
            "saved_round_trips": 0});
        let mut flow = json!({
            "testcase": "transfer", "testcase_facts": facts, "requests": ["/1", "/2"],
            "client": program, "server": program,
        });
        if is_of_frames {
            flow["testcase"] = json!("frames");
            flow["frames"] = json!({"interval_us": 1, "deadline_ms": 1, "over": "streams"});
        }
        serde_json::from_value(flow).expect("a flow of a job")
    }

    #[test]
    fn where_measures_hang_on_it_the_client_reports_on_each_request() {
        let said = [RequestReport::default(), RequestReport::default()];
        assert_eq!(unreported(&flow(true), &said), None);
        let words = unreported(&flow(true), &said[..1]);
        let expected = "the client reports on 1 of 2 requests";
        assert_eq!(words.as_deref(), Some(expected));
        // In real time nobody reports on files.
        assert_eq!(unreported(&flow(false), &[]), None);
    }
}
