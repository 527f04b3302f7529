//! The files that are sent, and those that come.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use memmap2::Mmap;

use crate::error::EndpointError;
use crate::words::{path_of, wrong_request};

const BUFFER_BYTES: usize = 1 << 18;

/// A folder whose files can be sent.
#[derive(Debug)]
pub struct ServedFolder {
    folder: PathBuf,
    /// Files that have been asked for; copies share their memory.
    files: BTreeMap<PathBuf, Bytes>,
}

impl ServedFolder {
    /// The existing folder `www`.
    pub fn new(www: &Path) -> Result<Self, EndpointError> {
        Ok(Self {
            folder: www.canonicalize().map_err(EndpointError::file(www))?,
            files: BTreeMap::new(),
        })
    }

    /// The bytes of the file that `path` means, if there is one within the folder.
    pub fn load(&mut self, path: &str) -> Option<Bytes> {
        let file = self.locate(path)?;
        if let Some(bytes) = self.files.get(&file) {
            return Some(bytes.clone());
        }
        let bytes = map(&file)?;
        self.files.insert(file, bytes.clone());
        Some(bytes)
    }

    fn locate(&self, path: &str) -> Option<PathBuf> {
        let file = self.folder.join(path).canonicalize().ok()?;
        (file.starts_with(&self.folder) && file.is_file()).then_some(file)
    }
}

/// The file's bytes, mapped: what is not sent is not read, and nothing is copied.
#[expect(
    unsafe_code,
    reason = "whoever cuts a file that is being sent gets what they ask for"
)]
fn map(path: &Path) -> Option<Bytes> {
    let file = File::open(path).ok()?;
    // SAFETY: the files of a trial stay as they are until its end; they are written before it
    // starts.
    Some(Bytes::from_owner(unsafe { Mmap::map(&file) }.ok()?))
}

/// A file that is received, made when its first byte or its end does.
#[derive(Debug)]
pub struct Download {
    file: PathBuf,
    writer: Option<BufWriter<File>>,
}

impl Download {
    /// `path` within `folder`; `None` if it names no file or leads out of the folder.
    pub fn new(folder: &Path, path: &str) -> Option<Self> {
        let mut file = folder.to_owned();
        for part in Path::new(path).components() {
            let Component::Normal(name) = part else {
                return None;
            };
            file.push(name);
            if file.is_symlink() {
                return None;
            }
        }
        let names_a_file = file != folder && !path.ends_with('/');
        names_a_file.then_some(Self { file, writer: None })
    }

    /// The path of a request's URL, with its leading slash, and the file within `folder` that its
    /// reply goes to.
    pub fn of_url<'a>(folder: &Path, url: &'a str) -> Result<(&'a str, Self), EndpointError> {
        let path = path_of(url);
        let file = path.and_then(|path| Some((path, Self::new(folder, &path[1..])?)));
        let problem = "its path must name a file within the downloads folder";
        file.ok_or_else(|| wrong_request(url, problem))
    }

    /// Makes the file, unless that was done.
    pub fn open(&mut self) -> Result<&mut BufWriter<File>, EndpointError> {
        if self.writer.is_none() {
            if let Some(folder) = self.file.parent() {
                fs::create_dir_all(folder).map_err(EndpointError::file(folder))?;
            }
            let file = File::create(&self.file).map_err(EndpointError::file(&self.file))?;
            self.writer = Some(BufWriter::with_capacity(BUFFER_BYTES, file));
        }
        Ok(self.writer.as_mut().expect("made above"))
    }

    /// Stores what came next.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), EndpointError> {
        let written = self.open()?.write_all(bytes);
        written.map_err(EndpointError::file(&self.file))
    }

    /// Completes the file: it is there, even if empty, and closed. There may be more of them than a
    /// process may have open.
    pub fn complete(&mut self) -> Result<(), EndpointError> {
        self.open()?;
        self.close()
    }

    /// Closes the file as far as it came, if anything did.
    pub fn close(&mut self) -> Result<(), EndpointError> {
        let Some(mut writer) = self.writer.take() else {
            return Ok(());
        };
        writer.flush().map_err(EndpointError::file(&self.file))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_within_the_folder_are_sent() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().canonicalize().unwrap().join("www");
        fs::create_dir_all(folder.join("inner")).unwrap();
        fs::write(folder.join("inner/file"), "inside").unwrap();
        fs::write(root.path().join("secret"), "outside").unwrap();
        symlink(root.path().join("secret"), folder.join("link")).unwrap();
        let mut www = ServedFolder::new(&folder).unwrap();
        assert_eq!(&www.load("inner/file").unwrap()[..], b"inside");
        assert_eq!(&www.load("inner/../inner/file").unwrap()[..], b"inside");
        let absolute = root.path().join("secret");
        for wrong in [
            "absent",
            "inner",
            "../secret",
            "link",
            absolute.to_str().unwrap(),
        ] {
            assert_eq!(www.load(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn files_come_into_the_folder_only() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("downloads");
        fs::create_dir(&folder).unwrap();
        symlink(root.path(), folder.join("up")).unwrap();
        symlink(root.path().join("secret"), folder.join("link")).unwrap();
        for wrong in [
            "",
            "/",
            ".",
            "..",
            "../a",
            "a/../../b",
            "/etc/a",
            "a/",
            "up/a",
            "link",
        ] {
            assert!(Download::new(&folder, wrong).is_none(), "{wrong}");
        }
        let mut download = Download::new(&folder, "deep/a").unwrap();
        download.write(b"some ").unwrap();
        download.write(b"bytes").unwrap();
        download.complete().unwrap();
        assert_eq!(fs::read(folder.join("deep/a")).unwrap(), b"some bytes");
        let mut empty = Download::new(&folder, "b").unwrap();
        empty.close().unwrap();
        assert!(!folder.join("b").exists());
        empty.complete().unwrap();
        assert_eq!(fs::read(folder.join("b")).unwrap(), b"");
    }
}
