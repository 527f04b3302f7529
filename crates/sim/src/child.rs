//! An endpoint program as a child process: messages out on its fd 3, messages in from its fd 4.
//!
//! Nothing that a child does may hang the coordinator or take it along: every wait has a deadline,
//! what it says is checked before it is believed, and it is killed by its id and reaped when it is
//! dropped.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bentpipe_endpoint::contract;
use bentpipe_link::HostName;
use bytes::Bytes;
use command_fds::{CommandFdExt, FdMapping};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use bentpipe_trial::{ProcessExit, ProgramExit, SentMessage};

use crate::inbox::Inbox;
use crate::shared_memory::SharedMemory;

/// A pipe as large as an ordinary user may make it: an epoch's datagrams then pass in one or two
/// writes.
const PIPE_BYTES: usize = 1 << 20;
/// The first descriptor of a program behind those of its two pipes.
const FIRST_FURTHER: i32 = 5;
/// The most bytes that are kept of what a program prints.
const LOG_BYTES: u64 = 1 << 20;
/// A program that answers in time each time, and still takes this many times its silence in all, is
/// given up: a stack that spins costs its own trial and not the campaign.
const SILENCES_IN_ALL: u32 = 20;

/// The way in which a child broke the contract.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The program does not support what the job asks for.
    #[error("{0} does not support this: it exited with 127")]
    Unsupported(HostName),
    /// The program could not be started.
    #[error("{host}: cannot start {program}: {source}")]
    Start {
        host: HostName,
        program: String,
        source: io::Error,
    },
    /// The program ended before it was asked to.
    #[error("{host} ended by itself: {status}")]
    Ended { host: HostName, status: ExitStatus },
    /// The program closed its pipe but lives on.
    #[error("{0} closed its pipe without a word")]
    Closed(HostName),
    /// The program did not answer for too long.
    #[error("{host} was silent, or within one message, for {seconds} s")]
    Silent { host: HostName, seconds: u64 },
    /// The program answered each time, but was waited for too long in all.
    #[error("{host} was slow: it was waited for {seconds} s in all")]
    Slow { host: HostName, seconds: u64 },
    /// The program broke the contract.
    #[error("{host} broke the contract: {what}")]
    ProtocolViolation { host: HostName, what: String },
    /// Something on our side failed.
    #[error("{host}: {source}")]
    Io { host: HostName, source: io::Error },
}

impl ChildError {
    /// The host of the program that failed.
    pub fn host(&self) -> HostName {
        match self {
            Self::Unsupported(host)
            | Self::Closed(host)
            | Self::Start { host, .. }
            | Self::Ended { host, .. }
            | Self::Silent { host, .. }
            | Self::Slow { host, .. }
            | Self::ProtocolViolation { host, .. }
            | Self::Io { host, .. } => *host,
        }
    }
}

/// A running endpoint program.
#[derive(Debug)]
pub struct Child {
    host: HostName,
    process: Process,
    to: OwnedFd,
    from: OwnedFd,
    log: File,
    silence: Duration,
    /// How much longer its answers may take, all together.
    silence_left: Duration,
    messages: Vec<SentMessage>,
    /// The message that is being sent; the same memory for all.
    outbox: Vec<u8>,
    inbox: Inbox,
    /// Memory for long bodies, once the program says that it has mapped it.
    shared: Option<SharedMemory>,
    offered: Option<SharedMemory>,
    reaped: Option<ProcessExit>,
}

impl Child {
    /// Starts `command`, whose temporary files go to `scratch`; `silence` is how long it may be
    /// silent, in wall time.
    pub fn start(
        host: HostName,
        command: &[String],
        scratch: &Path,
        silence: Duration,
    ) -> Result<Self, ChildError> {
        Self::start_with(host, command, scratch, silence, Vec::new())
    }

    /// The same, with memory that HELLO may offer it ([`Self::offer`]).
    pub fn start_sharing(
        host: HostName,
        command: &[String],
        scratch: &Path,
        silence: Duration,
    ) -> Result<Self, ChildError> {
        let memory = SharedMemory::new();
        let (memory, descriptor) = memory.map_err(|source| ChildError::Io { host, source })?;
        let mut child = Self::start_with(host, command, scratch, silence, vec![descriptor])?;
        child.offered = Some(memory);
        Ok(child)
    }

    /// The memory that HELLO offers.
    pub fn offer(&self) -> Option<contract::SharedMemory> {
        self.offered.as_ref().map(|_| contract::SharedMemory {
            fd: FIRST_FURTHER,
            bytes: SharedMemory::BYTES,
        })
    }

    /// The program says in READY that it has mapped the memory.
    pub fn share(&mut self) -> Result<(), ChildError> {
        let Some(memory) = self.offered.take() else {
            return Err(self.violation("READY takes shared memory that nobody offered"));
        };
        self.shared = Some(memory);
        Ok(())
    }

    /// The same, with descriptors that it finds from [`FIRST_FURTHER`] on.
    pub fn start_with(
        host: HostName,
        command: &[String],
        scratch: &Path,
        silence: Duration,
        further: Vec<OwnedFd>,
    ) -> Result<Self, ChildError> {
        let program = command.first().cloned().unwrap_or_default();
        let started = Self::spawn(host, command, scratch, silence, further);
        started.map_err(|source| ChildError::Start {
            host,
            program,
            source,
        })
    }

    fn spawn(
        host: HostName,
        command: &[String],
        scratch: &Path,
        silence: Duration,
        further: Vec<OwnedFd>,
    ) -> io::Result<Self> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))?;
        let (its_3, to) = pipe()?;
        let (from, its_4) = pipe()?;
        // Our ends only: a child that neither reads nor writes must not block us.
        rustix::io::ioctl_fionbio(&to, true)?;
        rustix::io::ioctl_fionbio(&from, true)?;
        let log = File::from(rustix::fs::memfd_create(
            "log",
            rustix::fs::MemfdFlags::CLOEXEC,
        )?);
        let mut starter = Command::new(program);
        starter
            .args(arguments)
            .env("TMPDIR", scratch)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?);
        let descriptors = [its_3, its_4].into_iter().chain(further).zip(3..);
        let mappings = descriptors.map(|(parent_fd, child_fd)| FdMapping {
            parent_fd,
            child_fd,
        });
        starter
            .fd_mappings(mappings.collect())
            .map_err(|_| io::Error::other("file descriptors collide"))?;
        let process = starter.spawn()?;
        Ok(Self {
            host,
            process,
            to,
            from,
            log,
            silence,
            silence_left: silence * SILENCES_IN_ALL,
            messages: Vec::new(),
            outbox: Vec::new(),
            inbox: Inbox::default(),
            shared: None,
            offered: None,
            reaped: None,
        })
    }

    /// Its host.
    pub fn host(&self) -> HostName {
        self.host
    }

    /// Sends a message, and keeps it.
    pub fn send(&mut self, message: SentMessage) -> Result<(), ChildError> {
        self.outbox.clear();
        if !self.put_in_memory(&message) {
            message.put(&mut self.outbox);
        }
        self.messages.push(message);
        let mut rest = self.outbox.as_slice();
        let deadline = deadline(self.silence);
        while !rest.is_empty() {
            match rustix::io::write(&self.to, rest) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::AGAIN) => self.wait_for(PollFlags::OUT, deadline)?,
                Err(Errno::INTR) => {}
                Err(Errno::PIPE) => return Err(self.why_it_left()),
                Err(error) => return Err(self.io(error.into())),
            }
        }
        Ok(())
    }

    /// Puts the body of a long RUN into shared memory, and its header into the outbox. False if
    /// that is not the way for it.
    fn put_in_memory(&mut self, message: &SentMessage) -> bool {
        let SentMessage::Run { until, arrivals } = message else {
            return false;
        };
        let length = contract::run_body_len(arrivals);
        if length < contract::SHARED_FROM {
            return false;
        }
        let memory = self.shared.as_mut().and_then(|it| it.outgoing(length));
        let Some(mut place) = memory else {
            return false;
        };
        contract::put_run_body(&mut place, *until, arrivals);
        let header = contract::encode_header(length, contract::RUN | contract::SHARED);
        self.outbox.extend_from_slice(&header);
        true
    }

    /// Receives the body of the next message, which must be of type `kind`.
    pub fn receive(&mut self, kind: u8) -> Result<Bytes, ChildError> {
        let start = now();
        let result = self.receive_before(kind, start + self.silence.min(self.silence_left));
        self.silence_left = self.silence_left.saturating_sub(now() - start);
        result
    }

    fn receive_before(&mut self, kind: u8, deadline: Instant) -> Result<Bytes, ChildError> {
        let header = contract::HEADER_LEN;
        self.fill(header, deadline)?;
        let (length, found) = contract::decode_header(self.inbox.bytes())
            .map_err(|error| self.violation(error.to_string()))?;
        let is_shared = self.shared.is_some() && found & contract::SHARED != 0;
        let found = if is_shared {
            found & !contract::SHARED
        } else {
            found
        };
        if found != kind {
            let (found, kind) = (contract::message_name(found), contract::message_name(kind));
            return Err(self.violation(format!("a message of type {found}, where {kind} is due")));
        }
        if length > contract::BODY_LIMIT {
            return Err(self.violation(format!("a message of {length} bytes")));
        }
        let in_pipe = if is_shared { header } else { header + length };
        self.fill(in_pipe, deadline)?;
        let come = self.inbox.bytes().len();
        if come > in_pipe {
            let extra = come - in_pipe;
            return Err(self.violation(format!(
                "{extra} bytes more than its message has, without being asked"
            )));
        }
        if let (true, Some(memory)) = (is_shared, &self.shared) {
            if length > SharedMemory::MOST {
                let what = format!("a message of {length} bytes in shared memory");
                return Err(self.violation(what));
            }
            self.inbox.append(length, |to| memory.take(length, to));
        }
        Ok(self.inbox.take(header + length).slice(header..))
    }

    /// Waits for its exit after BYE, which must be a success.
    pub fn leave(&mut self) -> Result<(), ChildError> {
        if !self.wait_for_exit()? {
            return Err(self.violation(format!(
                "it did not exit within {} s of BYE",
                self.silence.as_secs()
            )));
        }
        let status = self.kill_and_reap().status;
        if status.success() {
            Ok(())
        } else {
            Err(ChildError::Ended {
                host: self.host,
                status,
            })
        }
    }

    /// Kills it if it still lives, and returns what is left of it.
    pub fn exit(&mut self) -> ProgramExit {
        let reaped = self.kill_and_reap();
        let mut log = Vec::new();
        if self.log.seek(SeekFrom::Start(0)).is_ok() {
            // A log that cannot be read is no reason to lose the trial: it stays as far as it was
            // read.
            let _ = (&self.log).take(LOG_BYTES).read_to_end(&mut log);
        }
        ProgramExit {
            cpu: reaped.cpu,
            peak_memory_bytes: reaped.peak_memory_bytes,
            log,
            messages: std::mem::take(&mut self.messages),
        }
    }

    /// The error of a child that broke the contract.
    pub fn violation(&self, what: impl Into<String>) -> ChildError {
        ChildError::ProtocolViolation {
            host: self.host,
            what: what.into(),
        }
    }

    /// Reads until `size` bytes of the current message are there; a read may bring more.
    fn fill(&mut self, size: usize, deadline: Instant) -> Result<(), ChildError> {
        while self.inbox.bytes().len() < size {
            match self.inbox.read(&self.from, size) {
                Ok(0) => return Err(self.why_it_left()),
                Err(Errno::AGAIN) => self.wait_for(PollFlags::IN, deadline)?,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(self.io(error.into())),
            }
        }
        Ok(())
    }

    fn wait_for(&self, event: PollFlags, deadline: Instant) -> Result<(), ChildError> {
        let pipe = if event == PollFlags::OUT {
            &self.to
        } else {
            &self.from
        };
        let ready = poll_one(pipe, event, deadline).map_err(|error| self.io(error))?;
        let host = self.host;
        if ready {
            Ok(())
        } else if self.silence_left < self.silence {
            let seconds = (self.silence * SILENCES_IN_ALL).as_secs();
            Err(ChildError::Slow { host, seconds })
        } else {
            let seconds = self.silence.as_secs();
            Err(ChildError::Silent { host, seconds })
        }
    }

    /// Waits for its exit, for as long as it may take to answer.
    fn wait_for_exit(&self) -> Result<bool, ChildError> {
        if self.reaped.is_some() {
            return Ok(true);
        }
        let id = rustix::process::Pid::from_child(&self.process);
        let wait = || {
            let handle = rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty())?;
            poll_one(&handle, PollFlags::IN, deadline(self.silence))
        };
        wait().map_err(|error| self.io(error))
    }

    /// Its pipe is closed: tells an exit from a mere close, and "unsupported" from a crash.
    fn why_it_left(&mut self) -> ChildError {
        match self.wait_for_exit() {
            Ok(true) => {}
            Ok(false) => return ChildError::Closed(self.host),
            Err(error) => return error,
        }
        let status = self.kill_and_reap().status;
        let before_ready = self.messages.len() <= 1;
        match status.code() {
            Some(127) if before_ready => ChildError::Unsupported(self.host),
            _ => ChildError::Ended {
                host: self.host,
                status,
            },
        }
    }

    fn kill_and_reap(&mut self) -> ProcessExit {
        *self
            .reaped
            .get_or_insert_with(|| ProcessExit::kill(&mut self.process))
    }

    fn io(&self, source: io::Error) -> ChildError {
        ChildError::Io {
            host: self.host,
            source,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill_and_reap();
    }
}

/// A pipe (read end, write end) that no child inherits unless it is passed on.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // An ordinary user's quota of pipe memory may be used up: a smaller pipe is only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(&write, PIPE_BYTES);
    Ok((read, write))
}

/// The end of a wait that begins now. A message has to pass as a whole within it, so that a program
/// which sends a byte now and then is silent too.
fn deadline(timeout: Duration) -> Instant {
    now() + timeout
}

#[expect(
    clippy::disallowed_methods,
    reason = "real processes are waited for in real time"
)]
fn now() -> Instant {
    Instant::now()
}

/// Waits for `event` (or a hang-up) on `fd`; false if the deadline came first.
#[expect(
    clippy::disallowed_methods,
    reason = "real processes are waited for in real time"
)]
fn poll_one(fd: &impl AsFd, event: PollFlags, deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(fd, event)], Some(&timeout)) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
