//! Keeps idle processors from sleeping.
//!
//! A virtual machine whose processor has nothing to do gives it back to the hypervisor, and gets it
//! again late: by milliseconds where the host is busy. So a thread on each processor does nothing
//! all the time, at a priority (`SCHED_IDLE`) that gives way at once to whatever else is to run. On
//! hardware of one's own it keeps processors out of their deeper states of sleep; it costs power
//! either way.
//!
//! Where the hypervisor rations processors it does harm: a processor that is always busy uses up
//! its share, and is withheld for the rest of each period, a tenth of a second and more. So a
//! thread whose processor was withheld for long gives up.

use std::fs;
use std::hint::spin_loop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::process::nice;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::{Doing, EmulatorError};

/// Spins between two looks at how long a processor was withheld: some tens of milliseconds.
const SPINS: u32 = 1_000_000;
/// Looks in about a second.
const LOOKS: u32 = 25;
/// Hundredths of a second of these for which a processor may be withheld before its thread gives
/// up: what a host without rations needs for its own work is less.
const MOST_WITHHELD: u64 = 5;

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
    let (mut before, mut looks) = (withheld_ticks(processor), 0);
    while !end.load(Ordering::Relaxed) {
        for _ in 0..SPINS {
            spin_loop();
        }
        let now = withheld_ticks(processor);
        let ticks = now.saturating_sub(before);
        looks += 1;
        if looks == LOOKS {
            (before, looks) = (now, 0);
        }
        if ticks >= MOST_WITHHELD {
            let ms = 10 * ticks;
            eprintln!(
                "note: processor {processor} is no longer kept awake: this virtual machine's host \
                 withheld it for {ms} ms"
            );
            return;
        }
    }
}

/// How often a processor was withheld by the hypervisor, in hundredths of a second since boot; 0
/// where that is not known.
fn withheld_ticks(processor: usize) -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    withheld_in(&stat, processor).unwrap_or(0)
}

/// The same in the text of `/proc/stat`: the eighth figure of the processor's line (proc(5)).
fn withheld_in(stat: &str, processor: usize) -> Option<u64> {
    let name = format!("cpu{processor}");
    let mut lines = stat.lines().map(str::split_ascii_whitespace);
    let mut line = lines.find_map(|mut words| (words.next()? == name).then_some(words))?;
    line.nth(7)?.parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_each_processor_is_read() {
        let stat = "cpu  1 2 3 4 5 6 7 80 0 0\ncpu0 1 2 3 4 5 6 7 30 0 0\ncpu1 1 1 1 1 1 1 1 50 0 \
                    0\nintr 9\n";
        assert_eq!(withheld_in(stat, 0), Some(30));
        assert_eq!(withheld_in(stat, 1), Some(50));
        assert_eq!(withheld_in(stat, 2), None);
        assert_eq!(withheld_in("", 0), None);
    }
}
