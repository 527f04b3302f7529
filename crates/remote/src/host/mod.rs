//! The agent on a host of a real link: it starts and ends programs, takes and gives files, and says
//! what time it is, for who holds the other end of its standard input.
//!
//! A message is a line of JSON, and as many bytes behind it as its `bytes` says; each request is
//! answered with its `id`, and events come when they come. When its standard input ends, when
//! nothing has come for too long, or when it is asked to end, it kills all that it has started,
//! also what these have started and left behind, and removes its folder. It needs no privileges.

mod files;
mod message;
mod program;
mod requests;

use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::message::{Incoming, Outgoing};
use self::requests::HostState;
use crate::clock::{now, pause};

/// The prefix of the names of connections' folders.
const PREFIX: &str = "bentpipe-remote-";
/// A file in each that is locked as long as its process lives.
const ALIVE: &str = ".alive";
/// The name of that file until it is locked.
const ALIVE_BEFORE: &str = ".alive-before";

/// The options of a host.
pub struct Options {
    /// The time by which it says that its clock is ahead of what it is: for tests.
    pub ahead_ns: i64,
    /// The silence after which the other side counts as gone.
    pub silence_s: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ahead_ns: 0,
            silence_s: 15,
        }
    }
}

/// Serves until there is nobody to serve.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    become_subreaper()?;
    let (folder, _alive) = own_folder()?;
    let heard = Arc::new(Mutex::new(now()));
    watch(options, &folder, &heard)?;
    let mut host = HostState::new(folder.clone(), options.ahead_ns, Outgoing::default())?;
    let mut incoming = Incoming::default();
    // An error is that of what is broken: then there is nobody left.
    while matches!(incoming.read(), Ok(true)) {
        *heard.lock().expect("nobody panics with it") = now();
        while let Ok(Some(message)) = incoming.next() {
            if host.answer(&message).is_err() {
                leave(&folder);
            }
        }
    }
    leave(&folder)
}

/// A folder for this connection, and what says that it is somebody's as long as it is held. Those
/// of others that are gone, as after a power cut, are removed.
fn own_folder() -> Result<(PathBuf, File), Box<dyn Error>> {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(env::temp_dir())?.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry
                .metadata()
                .is_ok_and(|it| it.is_dir() && it.uid() == own);
        if let (true, Ok(alive)) = (is_ours, File::open(entry.path().join(ALIVE)))
            && flock(&alive, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?.keep();
    // Under its name it is locked: another connection that begins at this moment must not take this
    // one for gone.
    let unnamed = folder.join(ALIVE_BEFORE);
    let alive = File::create(&unnamed)?;
    flock(&alive, FlockOperation::LockExclusive)?;
    fs::rename(unnamed, folder.join(ALIVE))?;
    Ok((folder, alive))
}

/// Ends when it is asked to, or when nothing has come for too long: another thread may wait,
/// writing, for somebody who is gone.
fn watch(
    options: &Options,
    folder: &Path,
    heard: &Arc<Mutex<Instant>>,
) -> Result<(), Box<dyn Error>> {
    let told = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&told))?;
    }
    let silence = Duration::from_secs(options.silence_s);
    let (folder, heard) = (folder.to_path_buf(), Arc::clone(heard));
    thread::spawn(move || {
        loop {
            pause(Duration::from_millis(100));
            let last = *heard.lock().expect("nobody panics with it");
            if told.load(Ordering::Relaxed) || now() - last > silence {
                leave(&folder);
            }
        }
    });
    Ok(())
}

/// Kills all that was started, and leaves nothing behind.
fn leave(folder: &Path) -> ! {
    kill_all();
    let gone = fs::remove_dir_all(folder).is_ok();
    exit(i32::from(!gone));
}

/// Makes orphans of a program children of this process, so that they can be found.
#[expect(
    unsafe_code,
    reason = "no crate in use has this call; it takes a number"
)]
fn become_subreaper() -> Result<(), Box<dyn Error>> {
    let done = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    if done != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok(())
}

/// Kills children until there are none: those of one that was killed are then this process's.
fn kill_all() {
    for _ in 0..1000 {
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        match wait(WaitOptions::NOHANG) {
            Err(Errno::CHILD) => return,
            Ok(Some(_)) => {}
            _ => pause(Duration::from_millis(2)),
        }
    }
}

/// The children of any thread of this process.
fn children() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = threads.filter_map(|thread| {
        let thread = thread.ok()?.path();
        fs::read_to_string(thread.join("children")).ok()
    });
    let numbers = lists.flat_map(|list| {
        let words = list.split_whitespace().map(str::to_owned);
        words.collect::<Vec<_>>()
    });
    numbers
        .filter_map(|word| Pid::from_raw(word.parse().ok()?))
        .collect()
}
