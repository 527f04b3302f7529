//! The files that are served.

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

use bentpipe_units::Span;

use crate::job::{FlowJob, Job};

/// Bytes of the files that are asked for.
pub fn size_of(www: &Path, requests: &[String]) -> Result<u64, String> {
    let mut sum = 0;
    for request in requests {
        let file = www.join(request.trim_start_matches('/'));
        let metadata = fs::metadata(&file);
        sum += metadata
            .map_err(|error| format!("{}: {error}", file.display()))?
            .len();
    }
    Ok(sum)
}

/// Makes files in `www` that are too large to go through within `duration`. They have nothing but
/// zeros in them, and so take no space.
pub fn make_endless(
    job: &Job,
    flow: &FlowJob,
    duration: Span,
    www: &Path,
) -> Result<(), Box<dyn Error>> {
    let rate = job
        .scenario
        .rate_of_all_paths(flow.testcase_facts.direction());
    let rate = rate.ok_or_else(|| {
        let name = &job.scenario.name;
        format!("scenario {name}: no link has a rate, so no file is too large for {duration}")
    })?;
    let bits = u128::from(rate.bps()) * u128::from(duration.as_nanos()) / 1_000_000_000;
    fs::create_dir_all(www)?;
    for request in &flow.requests {
        let file = File::create(www.join(request.trim_start_matches('/')))?;
        file.set_len(u64::try_from(bits / 8)? + 1)?;
    }
    Ok(())
}
