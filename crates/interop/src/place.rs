//! The surroundings of a program of the runner: a root with the host's folders and the runner's
//! own.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
};
use rustix::process::chroot;
use rustix::thread::UnshareFlags;

use crate::InteropError;

/// Scripts that images of the runner call before they start; here there is nothing to set up, and
/// nobody to wait for.
const SCRIPTS: [&str; 2] = ["setup.sh", "wait-for-it.sh"];
const NOTHING: &str = "#!/bin/sh\nexit 0\n";

/// The surroundings of a program, beside the host's folders.
pub struct Place {
    pub www: Option<PathBuf>,
    pub downloads: Option<PathBuf>,
    pub certs: Option<PathBuf>,
    pub hosts: String,
}

impl Place {
    /// Makes it, in a mount namespace of this process, and moves into it; the working directory
    /// stays.
    pub fn enter(&self) -> Result<(), InteropError> {
        own_mounts()?;
        let here = std::env::current_dir().map_err(InteropError::io("the working directory"))?;
        let root = tempfile::Builder::new().prefix("interop-").tempdir();
        // It stays, empty: what is mounted there goes with the namespace.
        let root = root
            .map_err(InteropError::io("a folder for the root"))?
            .keep();
        mount("tmpfs", &root, "tmpfs", MountFlags::empty(), None)
            .map_err(InteropError::io("mounting the root"))?;
        mirror(&root)?;
        let mine = [
            ("www", &self.www),
            ("downloads", &self.downloads),
            ("certs", &self.certs),
            ("logs", &None),
        ];
        for (name, source) in mine {
            let at = root.join(name);
            if !at.exists() {
                fs::create_dir(&at).map_err(InteropError::io(format!("/{name}")))?;
            }
            if let Some(source) = source {
                mount_bind(source, &at).map_err(InteropError::io(format!("/{name}")))?;
            }
        }
        self.name_server(&root)?;
        chroot(&root).map_err(InteropError::io("entering the root"))?;
        std::env::set_current_dir(&here).map_err(InteropError::io("the working directory"))
    }

    /// Puts the server's names into `/etc/hosts`, and the runner's scripts into the root.
    fn name_server(&self, root: &Path) -> Result<(), InteropError> {
        for name in SCRIPTS {
            let script = root.join(name);
            if !script.exists() {
                let made = fs::write(&script, NOTHING);
                let made = made
                    .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)));
                made.map_err(InteropError::io(format!("/{name}")))?;
            }
        }
        let hosts = root.join(".hosts");
        fs::write(&hosts, &self.hosts).map_err(InteropError::io("the names of the server"))?;
        let there = root.join("etc/hosts");
        if there.exists() {
            mount_bind(&hosts, &there).map_err(InteropError::io("/etc/hosts"))?;
        }
        Ok(())
    }
}

/// A mount namespace, of which nobody else sees anything.
fn own_mounts() -> Result<(), InteropError> {
    #[expect(
        unsafe_code,
        reason = "unsafe with UnshareFlags::FILES only, which is not asked for"
    )]
    let done = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) };
    done.map_err(InteropError::io(
        "making a mount namespace, which takes CAP_SYS_ADMIN",
    ))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(InteropError::io("making mounts private"))
}

/// Has all that is in the host's root in this one too.
fn mirror(root: &Path) -> Result<(), InteropError> {
    let entries = fs::read_dir("/").map_err(InteropError::io("/"))?;
    for entry in entries {
        let entry = entry.map_err(InteropError::io("/"))?;
        let (from, to) = (entry.path(), root.join(entry.file_name()));
        let failed = |error: io::Error| InteropError::io(from.display().to_string())(error);
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_symlink() {
            let target = fs::read_link(&from).map_err(failed)?;
            symlink(target, &to).map_err(failed)?;
        } else if kind.is_dir() {
            fs::create_dir(&to).map_err(failed)?;
            mount_bind_recursive(&from, &to).map_err(|error| failed(error.into()))?;
        } else if kind.is_file() {
            fs::write(&to, "").map_err(failed)?;
            mount_bind(&from, &to).map_err(|error| failed(error.into()))?;
        }
    }
    Ok(())
}
