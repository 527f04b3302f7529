//! The preparation of a trial, with which a testbed begins.

use std::error::Error;
use std::path::Path;

use crate::job::Job;
use crate::setup::FlowSetup;
use crate::verdict::verifier;

/// The setups of a job's flows, whose programs leave what they make within `scratch`. An error if
/// nobody could say what became of one.
pub fn flow_setups<'a>(job: &'a Job, scratch: &Path) -> Result<Vec<FlowSetup<'a>>, Box<dyn Error>> {
    for (number, flow) in job.flows.iter().enumerate() {
        verifier(flow, number)?;
    }
    let setups = (0..job.flows.len()).map(|number| FlowSetup::new(job, number, scratch));
    let setups = setups.collect::<Result<Vec<_>, _>>()?;
    setups[0].make_qlog_folders()?;
    Ok(setups)
}
