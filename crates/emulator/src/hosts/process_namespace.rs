//! Where this program and all that it starts live: a PID namespace, and for ordinary users a user
//! namespace around it.
//!
//! The program starts itself again as the first process of the PID namespace, and waits for it.
//! When the waiting one dies, even by SIGKILL, the kernel kills the first process, with that all
//! processes of the namespace, and with those their network namespaces go.
//!
//! In the user namespace, users keep their own number, and so their files; programs get all
//! capabilities that the namespace has (as ambient ones), so that `tcpdump`, port 80, and a shell
//! inside the shell work as they do for root.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Signal, getgid, getpgrp, getuid, set_parent_process_death_signal};
use rustix::stdio::stdin;
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use rustix::thread::{
    CapabilitySet, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};

use crate::error::{Doing, EmulatorError};
use crate::hosts::host::before_it_starts;
use crate::hosts::namespace::unshare;

/// The first argument of the process inside.
pub const INSIDE: &str = "--inside";

/// Runs this program once more, with `arguments`, as the first process of a PID namespace, and
/// waits for its end. An interrupt from the terminal is its business alone.
pub fn run_inside(arguments: &[OsString]) -> Result<ExitStatus, EmulatorError> {
    create_pid_namespace()?;
    let foreground = tcgetpgrp(stdin()).ok().filter(|group| *group == getpgrp());
    let program = env::current_exe().doing("looking for this program")?;
    let mut command = Command::new(program);
    command.arg(INSIDE).args(arguments);
    before_it_starts(&mut command, || {
        Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
    });
    let mut child = command.spawn().doing("starting this program again")?;
    ignore(&[libc::SIGINT, libc::SIGQUIT, libc::SIGTTOU]);
    let status = child.wait().doing("waiting for this program")?;
    if let Some(group) = foreground {
        // A shell inside took the terminal, and cannot give it back to a process outside that it
        // does not know.
        let _ = tcsetpgrp(stdin(), group);
    }
    Ok(status)
}

/// Prepares the process inside: `/proc` then shows its processes, and no others.
pub fn prepare_inside() -> Result<(), EmulatorError> {
    unshare(UnshareFlags::NEWNS)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).doing("making mounts private")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // In a user namespace the kernel refuses this if parts of the old one are covered, as in many
    // containers.
    mount("proc", "/proc", "proc", flags, None).map_err(EmulatorError::no_namespaces)
}

/// The exit code of a shell for how a program ended.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    u8::try_from(code.unwrap_or(1)).unwrap_or(1)
}

/// Makes the PID namespace for what is started next; the user namespace only if there is no other
/// way.
fn create_pid_namespace() -> Result<(), EmulatorError> {
    if unshare(UnshareFlags::NEWPID).is_ok() {
        return Ok(());
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(UnshareFlags::NEWUSER)?;
    let map = |file: &str, text: &str| {
        fs::write(format!("/proc/self/{file}"), text).map_err(EmulatorError::no_namespaces)
    };
    map("setgroups", "deny")?;
    map("uid_map", &format!("{user} {user} 1"))?;
    map("gid_map", &format!("{group} {group} 1"))?;
    keep_capabilities().map_err(EmulatorError::no_namespaces)?;
    unshare(UnshareFlags::NEWPID)
}

/// Hands all capabilities down to the programs that are started, which are no root's.
fn keep_capabilities() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable = sets.permitted;
    set_capabilities(None, sets)?;
    for one in sets.permitted & CapabilitySet::all() {
        configure_capability_in_ambient_set(one, true)?;
    }
    Ok(())
}

#[expect(
    unsafe_code,
    reason = "no crate in use ignores signals; nothing runs here when one comes"
)]
fn ignore(signals: &[libc::c_int]) {
    for signal in signals {
        unsafe { libc::signal(*signal, libc::SIG_IGN) };
    }
}
