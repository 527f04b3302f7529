//! The verifiers of workloads, by their test cases.

use std::io;

use super::files;
use crate::evidence::DecodedConnection;
use crate::schema::Outcome;
use crate::setup::FlowSetup;

/// The verifier of a test case, if it is one of a kind of workload.
type OfKind = fn(&str) -> Option<Box<dyn Verifier>>;

const KINDS: [OfKind; 1] = [files::verifier];

/// Why nothing was proved.
#[derive(Debug, PartialEq, Eq)]
pub enum ProofFailure {
    /// The wire shows something else: what was expected, and what was seen.
    Other(String),
    /// What matters could not be decrypted.
    Sealed(&'static str),
}

/// The verifier of a workload: it says whether what was asked for came.
pub(crate) trait Verifier {
    /// What is wrong with what arrived, if anything: an outcome and a detail.
    fn arrived(&self, setup: &FlowSetup) -> io::Result<Option<(Outcome, String)>>;

    /// Whether the wire of the client's hop shows what the test case asks for. All has arrived when
    /// this is asked.
    fn shown(&self, setup: &FlowSetup, seen: &[DecodedConnection]) -> Result<(), ProofFailure>;
}

/// The verifier of a test case. The error says that there is none.
pub(crate) fn verifier(testcase: &str) -> Result<Box<dyn Verifier>, String> {
    let found = KINDS.iter().find_map(|of_kind| of_kind(testcase));
    found.ok_or_else(|| format!("the job: there is no test case \"{testcase}\""))
}
