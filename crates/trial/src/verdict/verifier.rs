//! The verifiers of workloads, by their test cases.

use std::io;

use bentpipe_endpoint::contract::RequestReport;

use super::{Verdict, files, frames, live, page};
use crate::evidence::DecodedConnection;
use crate::job::{FlowJob, TestCaseFacts};
use crate::schema::Outcome;
use crate::setup::FlowSetup;

/// A kind of workload.
pub(crate) struct Kind {
    /// Its test cases, and the verifier of each.
    pub verifiers: &'static [(&'static str, &'static dyn Verifier)],
}

const KINDS: [Kind; 4] = [files::KIND, page::KIND, live::KIND, frames::KIND];

/// The reason why nothing was proved.
#[derive(Debug, PartialEq, Eq)]
pub enum ProofFailure {
    /// The wire shows something else: what was expected, and what was seen.
    Other(String),
    /// What matters could not be decrypted.
    Sealed(&'static str),
}

/// The verifier of a workload: it says whether what was asked for came.
pub(crate) trait Verifier: Sync {
    /// Whether a job's facts are those that it goes by.
    fn agrees(&self, facts: TestCaseFacts) -> bool;

    /// What is wrong with what arrived, if anything: an outcome and a detail.
    fn arrived(&self, setup: &FlowSetup) -> io::Result<Option<(Outcome, String)>>;

    /// Whether the client reports when what it asked for arrived, as far as measures need it.
    fn is_told(&self, requests: &[RequestReport]) -> bool {
        requests.iter().all(|it| it.last_byte_ns.is_some())
    }

    /// What is missing at the end, where what arrived alone does not say.
    fn unfinished(&self, verdict: &Verdict) -> Option<(Outcome, String)> {
        let _ = verdict;
        None
    }

    /// What the client did against the rules of the test case, by what it says itself.
    fn disobeyed(&self, flow: &FlowJob, requests: &[RequestReport]) -> Option<String> {
        let _ = (flow, requests);
        None
    }

    /// Whether the wire of the client's hop shows what the test case asks for. All has arrived when
    /// this is asked.
    fn shown(&self, setup: &FlowSetup, seen: &[DecodedConnection]) -> Result<(), ProofFailure>;
}

/// The verifier of the flow with that number. The error says why there is none.
pub(crate) fn verifier(flow: &FlowJob, number: usize) -> Result<&'static dyn Verifier, String> {
    let all = || KINDS.iter().flat_map(|kind| kind.verifiers);
    let wanted = flow.testcase.as_str();
    let Some((_, found)) = all().find(|(name, _)| *name == wanted) else {
        let names: Vec<_> = all().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        return Err(format!(
            "the job: flows[{number}].testcase: {wanted:?} is none of {names}"
        ));
    };
    if !found.agrees(flow.testcase_facts) {
        return Err(format!(
            "the job: flows[{number}].testcase_facts: they are not those of {wanted}"
        ));
    }
    Ok(*found)
}
