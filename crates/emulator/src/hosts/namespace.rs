//! Network namespaces, held by file descriptor: they vanish with the last holder, however it ends.
//!
//! Which namespace a thread is in is a matter of the thread alone. So namespaces are made, and
//! configured, by threads that do nothing else.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::error::{Doing, EmulatorError};

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// Makes one with nothing in it.
    pub fn new() -> Result<Self, EmulatorError> {
        on_a_thread(|| {
            unshare(UnshareFlags::NEWNET)?;
            Self::current()
        })
    }

    /// The calling thread's.
    pub fn current() -> Result<Self, EmulatorError> {
        open("net").map(Self)
    }

    /// Moves the calling thread into it.
    pub fn enter(&self) -> Result<(), EmulatorError> {
        move_into_link_name_space(self.as_fd(), Some(LinkNameSpaceType::Network))
            .doing("entering a network namespace")
    }

    /// Does `work` inside, on a separate thread.
    pub fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, EmulatorError> + Send,
    ) -> Result<T, EmulatorError> {
        on_a_thread(|| {
            self.enter()?;
            work()
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Holds one of the calling thread's namespaces: `net`, `mnt` or `uts`.
pub(crate) fn open(kind: &str) -> Result<OwnedFd, EmulatorError> {
    let path = Path::new("/proc/thread-self/ns").join(kind);
    let file = File::open(&path).doing(format!("opening {}", path.display()))?;
    Ok(file.into())
}

/// Does `work` on a separate thread, whose namespaces no other code uses.
pub(crate) fn on_a_thread<T: Send>(
    work: impl FnOnce() -> Result<T, EmulatorError> + Send,
) -> Result<T, EmulatorError> {
    thread::scope(|scope| scope.spawn(work).join().expect("the work does not panic"))
}

/// Moves the calling thread into new namespaces.
pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), EmulatorError> {
    #[expect(
        unsafe_code,
        reason = "unsafe with UnshareFlags::FILES only, which nothing here asks for"
    )]
    let done = unsafe { rustix::thread::unshare_unsafe(flags) };
    done.map_err(EmulatorError::no_namespaces)
}
