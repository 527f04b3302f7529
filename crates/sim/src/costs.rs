//! The CPU time that the steps of a trial took, of this process.

use std::time::Duration;

use serde::Serialize;

/// The steps so far, by name, in seconds.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Costs {
    steps: serde_json::Map<String, serde_json::Value>,
    #[serde(skip)]
    before: Duration,
}

impl Costs {
    /// A step has ended, which began where the one before did. The first began with the process.
    pub fn end(&mut self, step: &str) {
        let now = own_cpu();
        let took = now.saturating_sub(self.before);
        self.before = now;
        self.steps.insert(step.into(), took.as_secs_f64().into());
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "costs are printed for benchmarks, and decide nothing"
)]
fn own_cpu() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}
