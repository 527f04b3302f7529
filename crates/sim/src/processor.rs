//! Which processor a trial runs on.

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

/// Keeps this process, and all that it starts, on the processor where it is now.
///
/// That is for trials with guests. Their kernels wait for their programs, one system call after the
/// other, and for each other, often one packet after the other. To wake a process on another
/// processor, which may sleep, takes several times as long as to switch to it on the same one.
/// Which one was idle the system knew best when it started this process. Other programs compute in
/// parallel.
pub fn stay_on_this_one() {
    let own = sched_getcpu();
    if own < CpuSet::MAX_CPU {
        let mut only = CpuSet::new();
        only.set(own);
        // Where that is refused, a trial takes longer.
        let _ = sched_setaffinity(None, &only);
    }
}
