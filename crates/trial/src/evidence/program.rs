//! The remains of an endpoint program: its exit and its output.

use std::process::{Child, ExitStatus};
use std::time::Duration;

use bentpipe_endpoint::contract::{Arrival, put_run};
use wait4::Wait4;

/// The exit of a program: what it used and said, known when it is gone.
#[derive(Debug, Default)]
pub struct ProgramExit {
    /// User and system CPU time.
    pub cpu: Duration,
    /// The most memory that it had at once, of what lay in RAM.
    pub peak_memory_bytes: u64,
    /// Standard output and standard error.
    pub log: Vec<u8>,
    /// Every message that it was sent, so that it can be replayed alone; none outside of virtual
    /// time.
    pub messages: Vec<SentMessage>,
}

/// A message that a program was sent.
#[derive(Debug)]
pub enum SentMessage {
    /// RUN. What arrives is kept where the packet log has it, and not copied.
    Run {
        /// The end of the run, exclusive, in nanoseconds of the program's time.
        until: u64,
        /// The datagrams that arrive.
        arrivals: Vec<Arrival>,
    },
    /// Another one, whole.
    Other(Vec<u8>),
}

impl SentMessage {
    /// Writes it behind what is in `messages`, as it was sent.
    pub fn put(&self, messages: &mut Vec<u8>) {
        match self {
            Self::Run { until, arrivals } => put_run(messages, *until, arrivals),
            Self::Other(whole) => messages.extend_from_slice(whole),
        }
    }
}

impl ProgramExit {
    /// The messages that it was sent, one behind the other.
    #[must_use]
    pub fn frames(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for message in &self.messages {
            message.put(&mut all);
        }
        all
    }

    /// The last line that it printed, if it printed any: where programs say why they fail.
    #[must_use]
    pub fn last_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.log);
        text.lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .map(str::to_owned)
    }
}

/// The exit of a process: how it ended, and what it used.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessExit {
    /// Its exit code, or the signal that ended it.
    pub status: ExitStatus,
    /// User and system CPU time, with that of its children.
    pub cpu: Duration,
    /// The most memory that it, or one of its children, had at once.
    pub peak_memory_bytes: u64,
}

impl ProcessExit {
    /// Kills a process if it still lives, and waits for its end.
    pub fn kill(process: &mut Child) -> Self {
        // It may be gone already; killing a child that is not yet reaped cannot hit another
        // process.
        let _ = process.kill();
        Self::wait(process)
    }

    /// Waits for the end of a process.
    pub fn wait(process: &mut Child) -> Self {
        match process.wait4() {
            Ok(usage) => Self {
                status: usage.status,
                cpu: usage.rusage.utime + usage.rusage.stime,
                peak_memory_bytes: usage.rusage.maxrss,
            },
            Err(_) => Self::default(), // it was reaped before, by whatever
        }
    }
}
