//! Keeps idle processors from sleeping.
//!
//! A virtual machine whose processor has nothing to do gives it back to the hypervisor, and gets it
//! again late: by milliseconds where the host is busy. So a thread on each processor does nothing
//! all the time, at a priority (`SCHED_IDLE`) that gives way at once to whatever else is to run. On
//! hardware of one's own it keeps processors out of their deeper states of sleep; it costs power
//! either way.

use std::hint::spin_loop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::process::nice;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::{Doing, EmulatorError};

/// While it lives, the processors that this process may use are awake.
#[derive(Debug)]
pub struct IdlePrevention {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl IdlePrevention {
    /// From now on.
    pub fn start() -> Result<Self, EmulatorError> {
        let allowed = sched_getaffinity(None).doing("asking for the processors to use")?;
        let mut awake = Self {
            end: Arc::default(),
            threads: Vec::new(),
        };
        for processor in (0..CpuSet::MAX_CPU).filter(|&one| allowed.is_set(one)) {
            let end = Arc::clone(&awake.end);
            let thread = thread::Builder::new().name(format!("awake-{processor}"));
            let spawned = thread.spawn(move || stay(processor, &end));
            awake.threads.push(spawned.doing("starting a thread")?);
        }
        Ok(awake)
    }
}

impl Drop for IdlePrevention {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn stay(processor: usize, end: &AtomicBool) {
    let mut own = CpuSet::new();
    own.set(processor);
    // At another priority it would take time from the programs that are measured.
    let ready = sched_setaffinity(None, &own).map_err(io::Error::from);
    if let Err(error) = ready.and_then(|()| give_way()) {
        eprintln!("note: processor {processor} is not kept awake: {error}");
        return;
    }
    while !end.load(Ordering::Relaxed) {
        spin_loop();
    }
}

#[expect(unsafe_code, reason = "sched_setscheduler has no safe wrapper")]
fn give_way() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads the parameters; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) } {
        0 => {}
        _ => return Err(io::Error::last_os_error()),
    }
    // Of this thread, for who looks at how busy the processors are: what is niced is counted apart.
    nice(19)?;
    Ok(())
}
