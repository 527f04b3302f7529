//! Files of a host: those of the helper's folder, and programs in the cache, by what is in them.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A path within `folder`; an error if it leads out of it.
pub fn within(folder: &Path, path: &str) -> io::Result<PathBuf> {
    let relative = Path::new(path);
    let plain = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if plain && !path.is_empty() {
        return Ok(folder.join(relative));
    }
    let what = format!("{path:?} leads out of the folder");
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// Makes a folder that is the user's alone, with those around it.
pub fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

/// An error if others may write there: what lies there would be run.
pub fn check_private(folder: &Path) -> io::Result<()> {
    let metadata = fs::metadata(folder)?;
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own || metadata.permissions().mode() & 0o022 != 0 {
        let what = format!("{} is not this user's alone to write to", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    Ok(())
}

/// Writes a file as a whole, or not at all.
pub fn write(path: &Path, bytes: &[u8], is_program: bool) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    make_private(folder)?;
    let mut partial = tempfile::NamedTempFile::new_in(folder)?;
    partial.write_all(bytes)?;
    let mode = if is_program { 0o700 } else { 0o600 };
    partial
        .as_file()
        .set_permissions(fs::Permissions::from_mode(mode))?;
    partial.persist(path)?;
    Ok(())
}

/// Adds to a file: what is large comes in parts.
pub fn append(path: &Path, bytes: &[u8], is_first: bool) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        make_private(folder)?;
    }
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .append(!is_first)
        .truncate(is_first)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

/// SHA-256 of a file, in hexadecimal.
pub fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            count => hash.update(&chunk[..count]),
        }
    }
    let digits = hash.finalize();
    let mut text = String::new();
    for byte in digits {
        let _ = write!(text, "{byte:02x}"); // a text takes all
    }
    Ok(text)
}

/// The files below a folder.
#[derive(Default)]
pub struct Listing {
    /// Path, size and hash of each.
    pub files: Vec<Value>,
    /// The paths with names that are no UTF-8, which no message can hold: as far as they can be
    /// read.
    pub unreadable: Vec<String>,
}

/// Lists the files below a folder. One that is not there has none.
pub fn list(folder: &Path) -> io::Result<Listing> {
    let mut found = Listing::default();
    let mut open = vec![folder.to_path_buf()];
    while let Some(here) = open.pop() {
        if !here.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&here)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(folder).unwrap_or(&path);
                let Some(text) = name.to_str() else {
                    found.unreadable.push(name.to_string_lossy().into_owned());
                    continue;
                };
                let bytes = entry.metadata()?.len();
                let file = json!({"path": text, "size": bytes, "sha256": sha256(&path)?});
                found.files.push(file);
            }
        }
    }
    Ok(found)
}

/// Bytes of all files below a folder.
pub fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => size(&entry.path()),
            _ => entry.metadata().map_or(0, |it| it.len()),
        })
        .sum()
}
