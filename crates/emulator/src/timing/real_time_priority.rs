//! A thread that is given a processor before others.

use rustix::process::setpriority_process;

/// The lowest real-time priority: it comes before all that has none.
const PRIORITY: libc::c_int = 1;
const NICE: i32 = -20;

/// Raises the calling thread's priority as far as the user may, and says how: `fifo`, `nice` or
/// `normal`.
pub(crate) fn raise_priority() -> &'static str {
    if become_real_time() {
        "fifo"
    } else if setpriority_process(None, NICE).is_ok() {
        "nice" // of the calling thread alone: on Linux each thread has its own
    } else {
        "normal"
    }
}

#[expect(unsafe_code, reason = "sched_setscheduler has no safe wrapper")]
fn become_real_time() -> bool {
    let parameters = libc::sched_param {
        sched_priority: PRIORITY,
    };
    // Threads and processes that this thread starts shall not inherit the priority.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads the parameters; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}
