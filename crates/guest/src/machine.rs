//! A guest's kernel as a process: started, spoken to, and ended with all that it started.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bentpipe_endpoint::EndpointError;
use bentpipe_endpoint::driver::Pipes;
use command_fds::{CommandFdExt, FdMapping};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use crate::cli::Wanted;
use crate::greeting::Greeting;

/// A guest that runs.
pub struct Machine {
    process: Child,
    to: File,
    from: Pipes<File, io::Sink>,
}

impl Machine {
    /// Starts a guest whose shared folder is `folder`, with a device for each side of its program.
    pub fn start(
        wanted: &Wanted,
        folder: &Path,
        greeting: &Greeting,
    ) -> Result<Self, EndpointError> {
        Self::spawn(wanted, folder, greeting).map_err(|source| EndpointError::File {
            path: wanted.kernel.clone(),
            source,
        })
    }

    fn spawn(wanted: &Wanted, folder: &Path, greeting: &Greeting) -> io::Result<Self> {
        let (its_3, to) = pipe_with(PipeFlags::CLOEXEC)?;
        let (from, its_4) = pipe_with(PipeFlags::CLOEXEC)?;
        let inside = std::env::current_exe()?;
        if inside.to_string_lossy().contains(char::is_whitespace) {
            let what = format!(
                "{}: a guest cannot start from a path with spaces",
                inside.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut starter = Command::new(&wanted.kernel);
        starter
            .args(["root=none", "rootfstype=hostfs", "rootflags=/", "ro"])
            .arg(format!("init={}", inside.display()))
            .arg(format!("mem={}M", wanted.memory_mib))
            .args([
                "time-travel=inf-cpu",
                "time-travel-start=946684800000000000",
            ])
            .args(["random.trust_bootloader=on", "random.trust_cpu=on"])
            .args([
                "norandmaps",
                "quiet",
                "panic=-1",
                "uml_dir=machine",
                "umid=guest",
            ])
            .arg(if greeting.is_proxy() {
                "ttnet=3,4,2"
            } else {
                "ttnet=3,4,1"
            })
            .env_clear()
            .env("UML_SEED", format!("0x{}", greeting.seed()))
            // Restartable sequences need what the host's kernel does not do for a guest.
            .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
            .current_dir(folder)
            .stdin(Stdio::null());
        starter
            .fd_mappings(vec![
                FdMapping {
                    parent_fd: its_3,
                    child_fd: 3,
                },
                FdMapping {
                    parent_fd: its_4,
                    child_fd: 4,
                },
            ])
            .map_err(|_| io::Error::other("file descriptors collide"))?;
        Ok(Self {
            process: without_surprises(&mut starter).spawn()?,
            to: to.into(),
            from: Pipes::new(from.into(), io::sink()),
        })
    }

    /// Says something to the guest. One that is gone is found out when its answer is read.
    pub fn send(&mut self, message: &[u8]) -> Result<(), EndpointError> {
        match self.to.write_all(message) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(EndpointError::io("speaking to the guest")(error))
            }
            _ => Ok(()),
        }
    }

    /// Its next message's type and body; none if it has ended.
    pub fn receive(&mut self) -> Result<Option<(u8, &[u8])>, EndpointError> {
        self.from.receive()
    }

    /// Waits until it has switched itself off. How long that may take on a busy machine the
    /// coordinator knows, which ends this process, and the guest with it.
    pub fn leave(&mut self) -> Result<(), EndpointError> {
        let failed = EndpointError::io("waiting for the guest");
        self.process.wait().map_err(failed)?;
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The kernel has the processes of its programs end with it. It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Has this process end with the one that started it.
pub fn end_with_parent() -> Result<(), EndpointError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| EndpointError::io("asking to end with the coordinator")(error.into()))
}

/// Has the kernel's address space look the same each time, and end it with this process.
#[expect(
    unsafe_code,
    reason = "what is done between fork and exec allocates nothing"
)]
fn without_surprises(starter: &mut Command) -> &mut Command {
    let parent = getpid();
    // SAFETY: system calls alone.
    unsafe {
        starter.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(parent) {
                return Err(io::ErrorKind::BrokenPipe.into()); // it has gone before
            }
            if libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) == -1 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        })
    }
}
