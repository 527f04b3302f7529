//! Files for TLS secrets and qlog: buffered, and complete when they are closed.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::KeyLog;

use crate::error::EndpointError;

/// A log written event by event would cost many times the trial.
const BUFFER_BYTES: usize = 1 << 18;

/// A file that libraries may keep a clone of for as long as they like; [`LogFile::complete`]
/// completes it all the same.
#[derive(Debug, Clone)]
pub struct LogFile {
    path: PathBuf,
    writer: Arc<Mutex<BufWriter<File>>>,
}

impl LogFile {
    /// Makes an empty file.
    pub fn create(path: &Path) -> Result<Self, EndpointError> {
        Self::new(path, File::create(path))
    }

    /// Opens a file to write after what is there: both sides of a trial may share one.
    pub fn append(path: &Path) -> Result<Self, EndpointError> {
        Self::new(path, File::options().create(true).append(true).open(path))
    }

    fn new(path: &Path, file: io::Result<File>) -> Result<Self, EndpointError> {
        let file = file.map_err(EndpointError::file(path))?;
        let writer = Arc::new(Mutex::new(BufWriter::with_capacity(BUFFER_BYTES, file)));
        Ok(Self {
            path: path.to_owned(),
            writer,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BufWriter<File>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes out what is buffered.
    pub fn complete(&self) -> Result<(), EndpointError> {
        self.lock().flush().map_err(EndpointError::file(&self.path))
    }
}

/// The folder of qlog files of one side, `client.sqlog`, `client-2.sqlog` and so on.
///
/// Clones are the same folder: a library may hold one and make files when it sees new connections.
#[derive(Debug, Clone)]
pub struct LogFolder {
    path: PathBuf,
    stem: &'static str,
    files: Arc<Mutex<Vec<Result<LogFile, EndpointError>>>>,
}

impl LogFolder {
    /// The existing folder `path`.
    #[must_use]
    pub fn new(path: PathBuf, stem: &'static str) -> Self {
        Self {
            path,
            stem,
            files: Arc::default(),
        }
    }

    /// Makes the next file. A failure is `None` here and an error of [`LogFolder::complete`].
    #[must_use]
    pub fn create(&self) -> Option<LogFile> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let name = match files.len() {
            0 => format!("{}.sqlog", self.stem),
            count => format!("{}-{}.sqlog", self.stem, count + 1),
        };
        let file = LogFile::create(&self.path.join(name));
        let copy = file.as_ref().ok().cloned();
        files.push(file);
        copy
    }

    /// The file that was made last; `None`: none was, or it could not be.
    #[must_use]
    pub fn latest(&self) -> Option<LogFile> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.last()?.as_ref().ok().cloned()
    }

    /// Writes out all that is buffered.
    pub fn complete(&self) -> Result<(), EndpointError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.drain(..).try_for_each(|file| file?.complete())
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    /// Does nothing: libraries flush after every event.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl KeyLog for LogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = format!("{label} {} {}", hex(client_random), hex(secret));
        line.push('\n');
        // A full disk shows again, as an error, when the file is completed.
        let _ = self.lock().write_all(line.as_bytes());
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes all text");
    }
    text
}
