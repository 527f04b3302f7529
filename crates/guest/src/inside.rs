//! The first process of a guest: mounts, addresses, the program, and the end.
//!
//! The root is the host's, read only. What is written goes to memory, or to the folder that both
//! sides see.

mod command;
mod listening;
mod printed;
mod surround;

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use bentpipe_endpoint::EndpointError;
use bentpipe_netlink::{Netlink, Prefix};
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::system::{RebootCommand, reboot};
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use signal_hook::consts::{SIGCHLD, SIGINT};
use signal_hook::iterator::Signals;

use crate::task::{REPORT, Report, TASK, Task, VERSION, read, write};

/// Where the folder is mounted that both sides see.
pub const SHARED: &str = "/run/guest";
/// Its place on the host, by the kernel's working directory: the same words in each guest.
const SHARED_OUTSIDE: &str = "/proc/self/cwd";
const DEVICE: &str = "tt0";
/// Less urgent messages of the kernel are printed.
const LOUDEST: &str = "/proc/sys/kernel/printk";
const BEGIN: &str = "/sys/module/ttnet/parameters/begin";
/// What the device's parameter is set to: time zero.
const NOW: &str = "1";
const WITH_FIRST_PACKET: &str = "2";
const DONE: &str = "/sys/module/ttnet/parameters/done";
/// What the device's parameter is set to: the program has ended, or there is nobody to wait for.
const IS_DONE: &str = "1";
/// It is done whenever no connection is open.
const WHEN_UNUSED: &str = "2";
/// A program that was told to end gets so much virtual time.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Virtual time for a server that does not say `ready`.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the first process waits for.
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
    mount_all()?;
    let shared = Path::new(SHARED);
    let task: Task = read(&shared.join(TASK))?.ok_or(EndpointError::Field {
        field: TASK,
        value: String::new(),
        problem: "there is no such file in the shared folder".to_owned(),
    })?;
    configure()?;
    connect(task.local).map_err(EndpointError::io("setting up the guest's device"))?;
    let version = match &task.surroundings {
        Some(around) => surround::surround(around).map(|()| String::new())?,
        None => version(&task),
    };
    fs::write(shared.join(VERSION), version).map_err(EndpointError::file(shared))?;
    let events = events()?;
    let mut guest = Guest {
        task: &task,
        zero: None,
        events,
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
}

impl Guest<'_> {
    fn run(&mut self) -> Result<(), EndpointError> {
        let mut program = if self.task.is_server {
            let mut program = self.start(Stdio::piped())?;
            if let Some(status) = self.await_ready(&mut program)? {
                return self.report(status);
            }
            set(DONE, WHEN_UNUSED)?;
            self.begin(NOW)?;
            program
        } else {
            self.begin(WITH_FIRST_PACKET)?;
            self.start(Stdio::inherit())?
        };
        let status = self.await_end(&mut program)?;
        self.report(status)?;
        if status.code() == Some(127) {
            return Ok(()); // not supported: nothing was begun
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
        starter.spawn().map_err(EndpointError::file(program))
    }

    /// Waits until the server says that it listens; its exit status if it ends before.
    fn await_ready(&self, program: &mut Child) -> Result<Option<ExitStatus>, EndpointError> {
        let output = program.stdout.take().expect("it is piped");
        let tell = self.events.0.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                println!("{line}");
                if line == "ready" {
                    let _ = tell.send(Event::Ready); // nobody waits any more at the end
                }
            }
        });
        loop {
            match self.events.1.recv_timeout(PATIENCE) {
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
                // It may have ended by itself meanwhile. A command has a group of its own.
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

    fn report(&self, status: ExitStatus) -> Result<(), EndpointError> {
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

/// Signals as events, from a thread of their own.
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

/// What the program says of itself when it is asked; nothing if it does not know `--version`.
fn version(task: &Task) -> String {
    let mut words = task.command.iter();
    let asked = words.next().map(|program| {
        let mut asker = Command::new(program);
        asker.args(words).arg("--version").env_clear();
        asker.stdin(Stdio::null()).stderr(Stdio::null()).output()
    });
    let said = asked.and_then(Result::ok).filter(|it| it.status.success());
    let text = said.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    text.as_deref()
        .and_then(|text| text.lines().next())
        .unwrap_or_default()
        .to_owned()
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

fn everything(local: IpAddr) -> Prefix {
    let address: IpAddr = match local {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Prefix { address, length: 0 }
}

fn mount_all() -> Result<(), EndpointError> {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
    ] {
        mount_one(kind, kind, place, None)?;
    }
    for place in [SHARED, "/run/home", "/run/tmp", "/dev/shm"] {
        fs::create_dir_all(place).map_err(EndpointError::file(place))?;
    }
    mount_one("tmpfs", "tmpfs", "/dev/shm", None)?;
    mount_one("hostfs", "none", SHARED, Some(SHARED_OUTSIDE))
}

fn mount_one(
    kind: &str,
    what: &str,
    place: &str,
    words: Option<&str>,
) -> Result<(), EndpointError> {
    let words = words.map(|words| std::ffi::CString::new(words).expect("no zero in it"));
    mount(what, place, kind, MountFlags::empty(), words.as_deref())
        .map_err(|error| EndpointError::file(place)(error.into()))
}

/// Settings of the kernel that every program needs.
fn configure() -> Result<(), EndpointError> {
    for (setting, value) in [
        ("net/ipv6/conf/default/accept_dad", "0"),
        ("net/ipv6/conf/default/accept_ra", "0"),
        ("net/ipv6/conf/default/router_solicitations", "0"),
        ("net/ipv6/conf/tt0/accept_dad", "0"),
        ("net/ipv6/conf/tt0/accept_ra", "0"),
        ("net/ipv6/conf/tt0/router_solicitations", "0"),
        ("net/ipv6/conf/tt0/addr_gen_mode", "1"),
        // What is stored leaves the memory while the program waits for more, and nobody waits for that:
        // a writer that is held up sleeps, and with it virtual time goes on.
        ("vm/dirty_background_bytes", "1048576"),
        ("vm/dirty_bytes", "67108864"),
    ] {
        set(&format!("/proc/sys/{setting}"), value)?;
    }
    Ok(())
}

/// Gives the guest its address, and sends all packets to the coordinator.
fn connect(local: IpAddr) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    netlink.set_up("lo")?;
    let own = Prefix {
        address: local,
        length: if local.is_ipv4() { 32 } else { 128 },
    };
    netlink.add_address(DEVICE, own)?;
    netlink.set_up(DEVICE)?;
    netlink.add_device_route(everything(local), DEVICE)
}

fn set(file: &str, value: &str) -> Result<(), EndpointError> {
    fs::write(file, value).map_err(EndpointError::file(file))
}
