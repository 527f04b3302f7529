//! A program that was started for the other side, and what it comes to.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, set_parent_process_death_signal, waitid,
};
use serde::Deserialize;
use serde_json::json;
use wait4::Wait4;

use super::message::Outgoing;
use crate::clock::{now_unix_ns, pause};

/// The bytes of its output that are kept: the end.
const SAID: usize = 1 << 20;

/// A program that is to be started.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The name that the other side gave it.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The hash that the program must have; None: one of the host's own.
    pub sha256: Option<String>,
    /// Its environment, beside PATH and HOME.
    pub environment: HashMap<String, String>,
    /// It is ready when it prints a line that begins so.
    pub ready: Option<String>,
}

/// A program under way.
pub struct Running {
    group: Pid,
    /// Whether its number may be another's by now.
    ended: Arc<Mutex<bool>>,
}

impl Running {
    /// Sends a signal to it and to what it started.
    pub fn signal(&self, signal: Signal) {
        let ended = self.ended.lock().expect("nobody panics with it");
        if !*ended {
            let _ = kill_process_group(self.group, signal);
        }
    }
}

/// Starts a program, which is killed with the thread that calls this. Events tell when it is ready,
/// and when it has ended.
pub fn start(start: Start, ahead_ns: i64, out: &Outgoing) -> io::Result<Running> {
    let empty = || io::Error::new(io::ErrorKind::InvalidInput, "the command is empty");
    let (program, arguments) = start.command.split_first().ok_or_else(empty)?;
    let (said, its_said) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .envs(&start.environment)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(its_said.try_clone()?)
        .stderr(its_said);
    die_with_parent(&mut command);
    let child = command.spawn()?;
    drop(command); // with our copies of what it prints to
    let group = Pid::from_child(&child);
    let ended = Arc::new(Mutex::new(false));
    let running = Running {
        group,
        ended: Arc::clone(&ended),
    };
    let watch = Watch {
        name: start.name,
        ready: start.ready,
        ahead_ns,
        out: out.clone(),
        kept: Arc::default(),
    };
    thread::spawn(move || watch.until_the_end(child, said, &ended));
    Ok(running)
}

#[expect(
    unsafe_code,
    reason = "what is done before the program starts is a system call, which allocates nothing and \
              takes no lock"
)]
fn die_with_parent(command: &mut Command) {
    let work = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    unsafe { command.pre_exec(work) };
}

/// The watch over a program.
struct Watch {
    name: String,
    ready: Option<String>,
    ahead_ns: i64,
    out: Outgoing,
    kept: Arc<Mutex<Vec<u8>>>,
}

impl Watch {
    /// Waits for its end, and reports it, even if no reader is left.
    fn until_the_end(self, mut child: Child, said: OwnedFd, ended: &Mutex<bool>) {
        let (kept, out, name) = (Arc::clone(&self.kept), self.out.clone(), self.name.clone());
        let ahead_ns = self.ahead_ns;
        let listener = thread::spawn(move || self.listen(said));
        let pid = Pid::from_child(&child);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
        let at = now_unix_ns() + ahead_ns;
        let usage = {
            // Until it is reaped, its number is its own.
            let mut ended = ended.lock().expect("nobody panics with it");
            let _ = kill_process_group(pid, Signal::KILL);
            *ended = true;
            child.wait4()
        };
        for _ in 0..100 {
            if listener.is_finished() {
                break;
            }
            pause(Duration::from_millis(1));
        }
        let said = kept.lock().expect("nobody panics with it");
        let usage = usage.ok();
        let status = usage.as_ref().map(|it| it.status);
        let used = usage.as_ref().map(|it| it.rusage.utime + it.rusage.stime);
        let event = json!({
            "event": "ended",
            "name": name,
            "at_unix_ns": at,
            "code": status.and_then(|it| it.code()),
            "signal": status.and_then(|it| it.signal()),
            "cpu_s": used.unwrap_or_default().as_secs_f64(),
            "memory_bytes": usage.map_or(0, |it| it.rusage.maxrss),
            "said": String::from_utf8_lossy(&said),
        });
        let _ = out.send(event, &[]);
    }

    fn listen(self, said: OwnedFd) {
        let mut lines = BufReader::new(File::from(said));
        let mut line = Vec::new();
        let mut is_ready = false;
        while matches!(lines.read_until(b'\n', &mut line), Ok(1..)) {
            let ready = self.ready.as_deref().map(str::as_bytes);
            if !is_ready && ready.is_some_and(|ready| line.starts_with(ready)) {
                is_ready = true;
                let at = now_unix_ns() + self.ahead_ns;
                let event = json!({"event": "ready", "name": self.name, "at_unix_ns": at});
                let _ = self.out.send(event, &[]);
            }
            let mut kept = self.kept.lock().expect("nobody panics with it");
            kept.append(&mut line);
            let much = kept.len().saturating_sub(SAID);
            kept.drain(..much);
        }
    }
}
