//! The first process of a guest: mounts, addresses, the program, and the end.
//!
//! The root is the host's, read only. What is written goes to memory, or to the folder that both
//! sides see.

mod command;
mod listening;
mod printed;
mod setup;
mod surround;
mod version;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use bentpipe_endpoint::EndpointError;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::system::{RebootCommand, reboot};
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use signal_hook::consts::{SIGCHLD, SIGINT};
use signal_hook::iterator::Signals;

use crate::task::{LAST_LINE, Part, REPORT, Report, TASK, Task, VERSION, read, write};

/// Where the folder is mounted that both sides see.
pub const SHARED: &str = "/run/guest";
/// Less urgent messages of the kernel are printed.
const LOUDEST: &str = "/proc/sys/kernel/printk";
const BEGIN: &str = "/sys/module/ttnet/parameters/begin";
/// The value of the device's parameter `begin`: time zero is now.
const NOW: &str = "1";
const WITH_FIRST_PACKET: &str = "2";
const DONE: &str = "/sys/module/ttnet/parameters/done";
/// The value of the device's parameter `done`: the program has ended, or nobody waits for it.
const IS_DONE: &str = "1";
/// The value that says that the program is done whenever no connection is open.
const WHEN_UNUSED: &str = "2";
/// The virtual time of a program that was asked to end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Virtual time for a server that does not say `ready`, and for a program that does not say its
/// version.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);

/// An event that the first process waits for.
enum Event {
    /// The server listens.
    Ready,
    /// A process has ended.
    Child,
    /// The coordinator said FINISH.
    Finish,
}

/// Lives as the guest's first process, and switches the guest off.
pub fn first_process() -> ExitCode {
    if let Err(error) = live() {
        println!("bentpipe-guest: inside: {error}");
    }
    rustix::fs::sync();
    let _ = set(LOUDEST, "0"); // that it goes is no last word of the program's
    match reboot(RebootCommand::PowerOff) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE, // the kernel panics when its first process ends
    }
}

fn live() -> Result<(), EndpointError> {
    setup::mount_all()?;
    let shared = Path::new(SHARED);
    let task: Task = read(&shared.join(TASK))?.ok_or(EndpointError::Field {
        field: TASK,
        value: String::new(),
        problem: "there is no such file in the shared folder".to_owned(),
    })?;
    setup::bind(&task)?;
    setup::configure()?;
    setup::connect(&task).map_err(EndpointError::io("setting up the guest's device"))?;
    let version = match &task.surroundings {
        Some(around) => surround::surround(around).map(|()| String::new())?,
        None => version::ask(&task.command),
    };
    fs::write(shared.join(VERSION), version).map_err(EndpointError::file(shared))?;
    let events = events()?;
    let mut guest = Guest {
        task: &task,
        zero: None,
        events,
        printed: None,
    };
    match &task.surroundings {
        Some(around) => guest.run_command(around),
        None => guest.run(),
    }
}

struct Guest<'a> {
    task: &'a Task,
    /// Time zero, by the monotonic clock.
    zero: Option<Duration>,
    events: (Sender<Event>, Receiver<Event>),
    /// Gives the last line of a program whose output is read.
    printed: Option<Receiver<String>>,
}

impl Guest<'_> {
    fn run(&mut self) -> Result<(), EndpointError> {
        let mut program = if self.task.part == Part::Client {
            self.begin(WITH_FIRST_PACKET)?;
            self.start(Stdio::inherit())?
        } else {
            let mut program = self.start(Stdio::piped())?;
            if let Some(status) = self.await_ready(&mut program)? {
                return self.report(status);
            }
            set(DONE, WHEN_UNUSED)?;
            self.begin(NOW)?;
            program
        };
        let status = self.await_end(&mut program)?;
        self.report(status)?;
        if !has_begun() {
            return Ok(()); // it was nobody's yet: what it left says why
        }
        set(DONE, IS_DONE)?;
        while !matches!(self.events.1.recv(), Ok(Event::Finish) | Err(_)) {}
        Ok(())
    }

    fn start(&self, output: Stdio) -> Result<Child, EndpointError> {
        let (program, arguments) = self.task.command.split_first().unwrap_or_else(|| {
            unreachable!("the command line asks for one");
        });
        let mut starter = Command::new(program);
        starter
            .args(arguments)
            .env_clear()
            .envs(&self.task.environment)
            .stdin(Stdio::null())
            .stdout(output);
        if let Part::Proxy { hello, .. } = &self.task.part {
            let file = Path::new("/run/hello.json");
            fs::write(file, hello).map_err(EndpointError::file(file))?;
            starter.stdin(File::open(file).map_err(EndpointError::file(file))?);
        }
        starter
            .spawn()
            .map_err(EndpointError::file(self.task.program()))
    }

    /// Waits until the server says that it listens; its exit status if it ends before.
    fn await_ready(&mut self, program: &mut Child) -> Result<Option<ExitStatus>, EndpointError> {
        let output = program.stdout.take().expect("it is piped");
        let tell = self.events.0.clone();
        let (said, printed) = channel();
        thread::spawn(move || {
            let (mut output, mut line, mut last) =
                (BufReader::new(output), Vec::new(), String::new());
            while output.read_until(b'\n', &mut line).is_ok_and(|it| it > 0) {
                String::from_utf8_lossy(&line)
                    .trim_end()
                    .clone_into(&mut last);
                println!("{last}");
                if last == "ready" {
                    let _ = tell.send(Event::Ready); // nobody waits any more at the end
                }
                line.clear();
            }
            let _ = said.send(last); // nor here
        });
        self.printed = Some(printed);
        loop {
            match self.events.1.recv_timeout(STARTUP_TIMEOUT) {
                Ok(Event::Ready) => return Ok(None),
                Ok(Event::Child) => {
                    if let Some(status) = ended(program)? {
                        return Ok(Some(status));
                    }
                }
                Ok(Event::Finish) | Err(_) => {
                    let what = "the server did not say that it is ready".to_owned();
                    return Err(EndpointError::Failed(what));
                }
            }
        }
    }

    /// Waits until the program ends, or ends it when the coordinator says so.
    fn await_end(&self, program: &mut Child) -> Result<ExitStatus, EndpointError> {
        loop {
            if let Some(status) = ended(program)? {
                return Ok(status);
            }
            if matches!(self.events.1.recv(), Ok(Event::Finish) | Err(_)) {
                let pid = Pid::from_child(program);
                // It may have ended by itself meanwhile. A command has a separate process group.
                let _ = match self.task.surroundings {
                    Some(_) => kill_process_group(pid, Signal::TERM),
                    None => kill_process(pid, Signal::TERM),
                };
                let _ = self.events.0.send(Event::Finish);
                wait(LAST_WORDS);
                if let Some(status) = ended(program)? {
                    return Ok(status);
                }
                let _ = program.kill();
                return program
                    .wait()
                    .map_err(EndpointError::io("waiting for the program"));
            }
        }
    }

    /// Lets time zero be now, or soon.
    fn begin(&mut self, when: &str) -> Result<(), EndpointError> {
        let epoch = Timespec {
            tv_sec: i64::try_from(self.task.epoch_unix_s).unwrap_or(i64::MAX),
            tv_nsec: 0,
        };
        clock_settime(ClockId::Realtime, epoch)
            .map_err(|error| EndpointError::io("setting the clock")(error.into()))?;
        self.zero = Some(now());
        set(BEGIN, when)
    }

    fn report(&mut self, status: ExitStatus) -> Result<(), EndpointError> {
        // A process that the program has left behind may hold its output for ever.
        let printed = self.printed.take();
        if let Some(Ok(line)) = printed.map(|it| it.recv_timeout(LAST_WORDS)) {
            let file = Path::new(SHARED).join(LAST_LINE);
            fs::write(&file, line).map_err(EndpointError::file(file))?;
        }
        let ended = self.zero.map(|zero| now().saturating_sub(zero));
        let report = Report {
            code: status.code(),
            signal: status.signal(),
            ended_ns: ended.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        };
        rustix::fs::sync();
        write(&Path::new(SHARED).join(REPORT), &report)
    }
}

/// Signals as events, from a separate thread.
fn events() -> Result<(Sender<Event>, Receiver<Event>), EndpointError> {
    let (tell, events) = channel();
    let mut signals =
        Signals::new([SIGCHLD, SIGINT]).map_err(EndpointError::io("waiting for signals"))?;
    let teller = tell.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            let event = if signal == SIGCHLD {
                Event::Child
            } else {
                Event::Finish
            };
            let _ = teller.send(event); // the end
        }
    });
    Ok((tell, events))
}

fn ended(program: &mut Child) -> Result<Option<ExitStatus>, EndpointError> {
    program
        .try_wait()
        .map_err(EndpointError::io("waiting for the program"))
}

/// Whether time zero has come.
fn has_begun() -> bool {
    fs::read_to_string(BEGIN).is_ok_and(|text| text.trim() == "1")
}

#[expect(clippy::disallowed_methods, reason = "a guest's time is virtual")]
fn wait(time: Duration) {
    thread::sleep(time);
}

#[expect(clippy::disallowed_methods, reason = "a guest's time is virtual")]
fn now() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(tv_nsec).unwrap_or_default())
}

fn set(file: &str, value: &str) -> Result<(), EndpointError> {
    fs::write(file, value).map_err(EndpointError::file(file))
}
