//! An endpoint program in socket mode, on a host of the topology.
//!
//! Nothing that it does may hang the trial or take it along: every wait has a deadline, and it is
//! killed by its id, with all that it started, when it is dropped.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bentpipe_emulator::{EmulatorError, Host};
use bentpipe_trial::{ProcessExit, ProgramExit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// The most bytes that are kept of what a program prints.
const LOG_BYTES: u64 = 1 << 20;

/// A program under way.
pub struct Program {
    process: Child,
    handle: OwnedFd,
    out: OwnedFd,
    log: File,
    said: Vec<u8>,
    reaped: Option<ProcessExit>,
}

/// The reason why a program could not be started.
pub enum NoProgram {
    /// The program is not there, or may not be executed.
    Start(io::Error),
    /// The testbed failed.
    Emulator(EmulatorError),
    /// This machine did: it is no fault of the program.
    System(io::Error),
}

/// The instructions that a program is started with.
#[derive(Debug, Default)]
pub struct Instructions {
    /// Variables of its environment; those without a value are not to be there.
    pub variables: Vec<(&'static str, Option<String>)>,
    /// The content of its standard input, if any.
    pub input: Option<Vec<u8>>,
}

impl Instructions {
    fn input(&self) -> io::Result<Stdio> {
        let Some(text) = &self.input else {
            return Ok(Stdio::null());
        };
        let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
        file.write_all(text)?;
        file.rewind()?;
        Ok(file.into())
    }
}

impl NoProgram {
    fn of_spawn(error: io::Error) -> Self {
        const ITS_OWN: [i32; 5] = [
            libc::ENOENT,
            libc::EACCES,
            libc::ENOEXEC,
            libc::ENOTDIR,
            libc::EISDIR,
        ];
        match error.raw_os_error() {
            Some(number) if ITS_OWN.contains(&number) => Self::Start(error),
            _ => Self::System(error),
        }
    }
}

/// The event that came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The line `ready`.
    Ready,
    /// The program ended.
    Ended,
    /// The deadline.
    Deadline,
}

impl Program {
    /// Starts `command` on `host`. It is killed when the thread that calls this ends.
    pub fn start(
        host: &Host,
        command: &[String],
        instructions: &Instructions,
    ) -> Result<Self, NoProgram> {
        let empty = || io::Error::new(io::ErrorKind::InvalidInput, "the command is empty");
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| NoProgram::Start(empty()))?;
        let mut starter = host.command(program).map_err(NoProgram::Emulator)?;
        let files = || -> io::Result<(File, OwnedFd, OwnedFd, Stdio)> {
            let log = File::from(memfd_create("log", MemfdFlags::CLOEXEC)?);
            let (out, its_out) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&out, true)?;
            Ok((log, out, its_out, instructions.input()?))
        };
        let (log, out, its_out, its_in) = files().map_err(NoProgram::System)?;
        for (name, value) in &instructions.variables {
            match value {
                Some(value) => starter.env(name, value),
                None => starter.env_remove(name),
            };
        }
        starter
            .args(arguments)
            .process_group(0)
            .stdin(its_in)
            .stdout(its_out)
            .stderr(log.try_clone().map_err(NoProgram::System)?);
        let process = starter.spawn().map_err(NoProgram::of_spawn)?;
        drop(starter); // with our copy of its standard output
        let handle = pidfd_open(Pid::from_child(&process), PidfdFlags::empty());
        Ok(Self {
            process,
            handle: handle.map_err(|error| NoProgram::System(error.into()))?,
            out,
            log,
            said: Vec::new(),
            reaped: None,
        })
    }

    /// Waits for the line `ready`.
    pub fn wait_ready(&mut self, deadline: Instant) -> io::Result<Event> {
        loop {
            self.listen()?;
            if self
                .said
                .split(|byte| *byte == b'\n')
                .any(|line| line == b"ready")
            {
                return Ok(Event::Ready);
            }
            match self.wait(deadline, true)? {
                Event::Ready => {}
                other => return Ok(other),
            }
        }
    }

    /// Waits for its end.
    pub fn wait_end(&mut self, deadline: Instant) -> io::Result<Event> {
        loop {
            self.listen()?;
            match self.wait(deadline, true)? {
                Event::Ready => {}
                other => return Ok(other),
            }
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        let ended = &mut [PollFd::new(&self.handle, PollFlags::IN)];
        matches!(poll(ended, Some(&Timespec::default())), Ok(1..))
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        // It may be gone already; its id is not given to another process before it is reaped.
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::TERM);
    }

    /// The exit status of the program, which is killed if it has not ended.
    pub fn status(&mut self) -> ExitStatus {
        self.reap().status
    }

    /// The last line that it has printed on standard error.
    pub fn last_line(&mut self) -> Option<String> {
        let log = ProgramExit {
            log: self.end_of_log(),
            ..ProgramExit::default()
        };
        log.last_line()
    }

    /// The last line that it has printed on standard output.
    pub fn last_said(&mut self) -> Option<String> {
        // Output that cannot be read any more counts as not written.
        let _ = self.listen();
        let said = ProgramExit {
            log: self.said.clone(),
            ..ProgramExit::default()
        };
        said.last_line()
    }

    /// The end of its standard error.
    fn end_of_log(&mut self) -> Vec<u8> {
        let mut end = Vec::new();
        let length = self.log.metadata().map_or(0, |it| it.len());
        let from = SeekFrom::Start(length.saturating_sub(LOG_BYTES));
        if self.log.seek(from).is_ok() {
            // A log that cannot be read is no reason to lose the trial: it stays as far as it was
            // read.
            let _ = (&self.log).take(LOG_BYTES).read_to_end(&mut end);
        }
        end
    }

    /// The exit of the program, which is killed if it still lives.
    pub fn exit(&mut self) -> ProgramExit {
        let reaped = self.reap();
        let _ = self.listen(); // what was said last
        let mut log = std::mem::take(&mut self.said);
        log.append(&mut self.end_of_log());
        ProgramExit {
            cpu: reaped.cpu,
            peak_memory_bytes: reaped.peak_memory_bytes,
            log,
            messages: Vec::new(),
        }
    }

    fn reap(&mut self) -> ProcessExit {
        let process = &mut self.process;
        *self.reaped.get_or_insert_with(|| {
            // With what it started, which has its group.
            let _ = kill_process_group(Pid::from_child(process), Signal::KILL);
            ProcessExit::kill(process)
        })
    }

    /// Takes what it has printed, as far as that is kept.
    fn listen(&mut self) -> io::Result<()> {
        let mut chunk = [0; 4096];
        loop {
            match rustix::io::read(&self.out, &mut chunk) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                Ok(count) if self.said.len() as u64 <= LOG_BYTES => {
                    self.said.extend_from_slice(&chunk[..count]);
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until it ends or, if `listen`, prints something.
    #[expect(
        clippy::disallowed_methods,
        reason = "real processes are waited for in real time"
    )]
    fn wait(&self, deadline: Instant, listen: bool) -> io::Result<Event> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            let out = PollFd::new(&self.out, PollFlags::IN);
            let mut events = vec![PollFd::new(&self.handle, PollFlags::IN)];
            events.extend(listen.then_some(out));
            match poll(&mut events, Some(&timeout)) {
                Ok(0) => return Ok(Event::Deadline),
                Ok(_) if !events[0].revents().is_empty() => return Ok(Event::Ended),
                Ok(_) if events[1].revents().contains(PollFlags::IN) => return Ok(Event::Ready),
                // It has closed its standard output: only its end is left to wait for.
                Ok(_) => return self.wait(deadline, false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.reap();
    }
}

/// Now, in the words of the standard library.
#[expect(
    clippy::disallowed_methods,
    reason = "real processes are waited for in real time"
)]
pub fn after(span: Duration) -> Instant {
    Instant::now() + span
}

/// Lets time pass.
#[expect(
    clippy::disallowed_methods,
    reason = "real processes are given real time"
)]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
