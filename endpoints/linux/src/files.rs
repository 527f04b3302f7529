//! The files that are sent, and those that come.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use bentpipe_endpoint::EndpointError;

/// Bytes that are read or written at once: a record of TLS holds as many.
const CHUNK: usize = 1 << 14;

/// The file below `folder` that `path`, with its slash, names; None if it leads out of the folder.
pub fn below(folder: &Path, path: &str) -> Option<PathBuf> {
    let relative = Path::new(path.strip_prefix('/')?);
    let plain = |part: Component| matches!(part, Component::Normal(_));
    let names_a_file = relative.components().count() > 0 && !path.ends_with('/');
    (names_a_file && relative.components().all(plain)).then(|| folder.join(relative))
}

/// An existing file below `folder`, links within it followed.
pub fn open(folder: &Path, path: &str) -> Option<File> {
    let (file, folder) = (
        below(folder, path)?.canonicalize().ok()?,
        folder.canonicalize().ok()?,
    );
    (file.starts_with(folder) && file.is_file()).then(|| File::open(file).ok())?
}

/// Stores all that comes as `file`; nothing, if the other end ends without `close_notify`.
pub fn store(from: &mut impl Read, file: &Path) -> Result<(), EndpointError> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(EndpointError::file(folder))?;
    }
    let stored = copy(from, file);
    if stored.as_ref().is_err_and(is_refusal) {
        fs::remove_file(file).map_err(EndpointError::file(file))?;
    }
    stored
}

/// Whether the other end ended without `close_notify`, which refuses a request.
pub fn is_refusal(error: &EndpointError) -> bool {
    let ended = io::ErrorKind::UnexpectedEof;
    matches!(error, EndpointError::Io { source, .. } if source.kind() == ended)
}

fn copy(from: &mut impl Read, file: &Path) -> Result<(), EndpointError> {
    let mut to = File::create(file).map_err(EndpointError::file(file))?;
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = read(from, &mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&chunk[..count])
            .map_err(EndpointError::file(file))?;
    }
}

/// Sends all of `file`.
pub fn send(file: &mut File, to: &mut impl Write) -> Result<(), EndpointError> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = read(file, &mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&chunk[..count])
            .map_err(EndpointError::io("sending"))?;
    }
}

fn read(from: &mut impl Read, chunk: &mut [u8]) -> Result<usize, EndpointError> {
    loop {
        match from.read(chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map_err(EndpointError::io("reading")),
        }
    }
}
