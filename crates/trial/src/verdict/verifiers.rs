//! The verifiers of all workloads, by their test cases.

use super::verifier::{Kind, Verifier};
use super::{files, frames, live, page};
use crate::job::FlowJob;

const KINDS: [Kind; 4] = [files::KIND, page::KIND, live::KIND, frames::KIND];

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
