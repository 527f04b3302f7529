//! The hosts of a topology, and programs that run on them.
//!
//! A host is a network namespace with a host name, and a mount namespace in which `/etc/hosts`
//! names all four.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bentpipe_link::HostName;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use rustix::process::{Signal, chdir, set_parent_process_death_signal};
use rustix::system::sethostname;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::error::{Doing, EmulatorError};
use crate::hosts::namespace::{Namespace, on_a_thread, open, unshare};

/// A host: its name and its namespaces.
#[derive(Debug)]
pub struct Host {
    name: HostName,
    network: Namespace,
    /// Its mounts and its host name, shared with the commands that are yet to be started.
    others: Arc<[OwnedFd; 2]>,
    variables: Vec<(&'static str, String)>,
}

impl Host {
    /// Makes a host whose `/etc/hosts` is `hosts`, and that shows its programs `variables`.
    pub(crate) fn new(
        name: HostName,
        hosts: &str,
        variables: Vec<(&'static str, String)>,
    ) -> Result<Self, EmulatorError> {
        on_a_thread(|| {
            unshare(UnshareFlags::NEWNET | UnshareFlags::NEWNS | UnshareFlags::NEWUTS)?;
            sethostname(name.name().as_bytes()).doing("setting the host name")?;
            show_names(hosts)?;
            Self::here(name, variables)
        })
    }

    /// The namespaces that the calling thread is in, as a host.
    pub(crate) fn here(
        name: HostName,
        variables: Vec<(&'static str, String)>,
    ) -> Result<Self, EmulatorError> {
        Ok(Self {
            name,
            network: Namespace::current()?,
            others: Arc::new([open("mnt")?, open("uts")?]),
            variables,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> HostName {
        self.name
    }

    /// Its network namespace.
    #[must_use]
    pub fn network(&self) -> &Namespace {
        &self.network
    }

    /// A command that runs on this host, in the current folder. It is killed when the thread that
    /// starts it ends, if it has not ended before.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command, EmulatorError> {
        let network = self.network.as_fd().try_clone_to_owned();
        let network = network.doing("holding a network namespace")?;
        let others = Arc::clone(&self.others);
        let folder = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let mut command = Command::new(program);
        command.envs(self.variables.iter().map(|(key, value)| (key, value)));
        before_it_starts(&mut command, move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            for other in others.iter() {
                move_into_link_name_space(other.as_fd(), None)?;
            }
            // Another mount namespace begins at its root.
            Ok(chdir(&folder)?)
        });
        Ok(command)
    }
}

#[expect(
    unsafe_code,
    reason = "what is done before the program starts is system calls, which allocate nothing and \
              take no lock"
)]
pub(crate) fn before_it_starts(
    command: &mut Command,
    work: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    unsafe { command.pre_exec(work) };
}

/// Names are looked up in IPv6 first, but what listens on IPv4 alone would then be asked in vain,
/// and be reached a round trip later.
const IPV4_FIRST: &str = "precedence ::ffff:0:0/96 100\n";

/// Covers files that say who has which address, in a new mount namespace. What covers them is in no
/// folder.
fn show_names(hosts: &str) -> Result<(), EmulatorError> {
    let aside = Path::new("/tmp");
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).doing("making mounts private")?;
    mount(
        "tmpfs",
        aside,
        "tmpfs",
        MountFlags::empty(),
        Some(c"mode=0755,size=64k"),
    )
    .doing("mounting a tmpfs")?;
    cover(Path::new("/etc/hosts"), hosts, aside)?;
    let order = Path::new("/etc/gai.conf");
    if order.exists() {
        cover(order, IPV4_FIRST, aside)?;
    }
    unmount(aside, UnmountFlags::DETACH).doing("unmounting a tmpfs")
}

fn cover(file: &Path, text: &str, aside: &Path) -> Result<(), EmulatorError> {
    let cover = aside.join(file.file_name().expect("a file"));
    fs::write(&cover, text).doing(format!("writing a new {}", file.display()))?;
    mount_bind(&cover, file).doing(format!("covering {}", file.display()))
}
