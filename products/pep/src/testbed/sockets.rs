//! Real time: the job comes on standard input, and what is to be said at the end is the last line
//! of standard output.

use std::io::{read_to_string, stdin};

use bentpipe_endpoint::contract::ProxyHello;
use bentpipe_endpoint::{Clock, EndpointError};

use super::job::Job;
use crate::VERSION;
use crate::program::serve_trial;

/// Serves until SIGTERM.
pub fn run() -> Result<(), EndpointError> {
    bentpipe_endpoint::keep_freed_memory();
    let text = read_to_string(stdin()).map_err(EndpointError::io("reading standard input"))?;
    let hello: ProxyHello = serde_json::from_str(&text)?;
    let clock = Clock::start_now();
    let (job, proxy) = Job::new(hello, &clock, true)?;
    let proxy = serve_trial(proxy, clock, job.listen)?;
    let mut bye = job.finish(proxy)?;
    VERSION.clone_into(&mut bye.version);
    println!("{}", serde_json::to_string(&bye)?);
    Ok(())
}
