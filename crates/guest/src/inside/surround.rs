//! The surroundings of a command: its working directory, which is the host's, and names of hosts.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use bentpipe_endpoint::EndpointError;
use rustix::mount::mount_bind;
use rustix::system::sethostname;

use super::SHARED;
use super::setup::mount_one;
use crate::task::Surroundings;

/// The folder of files that cover files of the host.
const COVERS: &str = "/run/covers";
/// Links that programs and shells expect beside devices.
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Mounts what a command finds around it, and names its host.
pub fn surround(surroundings: &Surroundings) -> Result<(), EndpointError> {
    let folder = &surroundings.folder;
    // A mount on a parent of the shared folder would cover it: in such a folder, a command only
    // reads.
    if !Path::new(SHARED).starts_with(folder) {
        fs::create_dir_all(folder).map_err(EndpointError::file(folder))?;
        let place = folder.to_str().unwrap_or_default(); // it was text in a task
        mount_one("hostfs", "none", place, Some(place))?;
    }
    fs::create_dir_all(COVERS).map_err(EndpointError::file(COVERS))?;
    cover("/etc/hosts", &surroundings.hosts)?;
    // No server is asked for other names: the answer is no, at once.
    cover("/etc/resolv.conf", "")?;
    for (link, to) in DEVICE_LINKS {
        std::os::unix::fs::symlink(to, link).map_err(EndpointError::file(link))?;
    }
    sethostname(surroundings.host.as_bytes())
        .map_err(|error| EndpointError::io("setting the host name")(error.into()))
}

/// Shows programs another text in place of a file, if they can see that file at all.
fn cover(file: &str, text: &str) -> Result<(), EndpointError> {
    let cover = Path::new(COVERS).join(Path::new(file).file_name().expect("a file"));
    fs::write(&cover, text).map_err(EndpointError::file(&cover))?;
    match mount_bind(&cover, file).map_err(std::io::Error::from) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(EndpointError::file(file)(error)),
        _ => Ok(()),
    }
}
