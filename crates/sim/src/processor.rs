//! Which processor a trial runs on.

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

/// Keeps this process, and all that it starts, on the processor where it is now.
///
/// The programs of a trial wait for each other, one packet after the other, and a guest's kernel for its
/// programs, one system call after the other. To wake a process on another processor, which may
/// sleep, takes several times as long as to switch to it on the same one. Which one is idle the
/// system knew best when it started this process.
pub fn stay_on_this_one() {
    let mut only = CpuSet::new();
    only.set(sched_getcpu());
    // Where that is refused, a trial takes longer.
    let _ = sched_setaffinity(None, &only);
}
