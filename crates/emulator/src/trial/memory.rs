//! Folders in memory, for files that are read while packets are forwarded.
//!
//! Of a file without content on a disk, the kernel makes pages as it is read, and reads ahead: by 8
//! MB where the device's `read_ahead_kb` says so. One that is not preempted in between
//! (`PREEMPT_NONE`) does nothing else meanwhile: 10 to 25 ms were seen, in which no packet came
//! out. In a tmpfs a file without content is read without pages; one that is mapped gets those that
//! are touched, one at a time.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use bentpipe_trial::{FlowSetup, Job};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// While it lives, the files that are too large to go through within a flow's duration lie in
/// memory, where they take no space unless a server maps them.
#[derive(Debug)]
pub(super) struct EndlessInMemory {
    folders: Vec<PathBuf>,
}

impl EndlessInMemory {
    /// Puts the files of the flows of `job` with a duration, whose folders are within `scratch`,
    /// into memory. The mount namespace must be of this process alone.
    pub(super) fn new(job: &Job, scratch: &Path) -> Result<Self, Box<dyn Error>> {
        let mut made = Self {
            folders: Vec::new(),
        };
        for (number, flow) in job.flows.iter().enumerate() {
            if flow.duration_ns.is_some() {
                let folder = FlowSetup::endless_folder(scratch, number);
                fs::create_dir_all(&folder)?;
                mount("tmpfs", &folder, "tmpfs", MountFlags::empty(), None).map_err(|error| {
                    format!("mounting a tmpfs on {}: {error}", folder.display())
                })?;
                made.folders.push(folder);
            }
        }
        Ok(made)
    }
}

impl Drop for EndlessInMemory {
    fn drop(&mut self) {
        for folder in &self.folders {
            let _ = unmount(folder, UnmountFlags::DETACH);
        }
    }
}
