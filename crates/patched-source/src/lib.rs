//! For build scripts: copies the source of a published crate from where cargo keeps it, and applies
//! patches, so that the crate of the script can include the result.
//!
//! cargo says nowhere where a dependency's source is, but the compiler has put it into the library:
//! whoever is called by the library can ask ([`Caller`]).

use std::panic::Location;
use std::path::{Path, PathBuf};
use std::{fs, io};

use bytes::Buf;
use diffy::patch_set::{FilePatch, ParseOptions, PatchSet};

/// An empty buffer that notes in which file it is read: a library that reads it is there.
#[derive(Debug, Default)]
pub struct Caller(Option<&'static str>);

impl Caller {
    /// The folder of the source of the library that has read this, wherever cargo has it: in its
    /// registry, or vendored.
    ///
    /// # Panics
    ///
    /// If it was compiled under another name.
    #[must_use]
    pub fn source(&self) -> PathBuf {
        let file = Path::new(self.0.expect("the library has read the buffer"));
        let folder = file.ancestors().find(|it| it.join("Cargo.toml").is_file());
        let Some(folder) = folder else {
            let what = "the source was compiled under another name";
            panic!(
                "{}: {what} (--remap-path-prefix, trim-paths?)",
                file.display()
            )
        };
        folder.to_owned()
    }
}

impl Buf for Caller {
    fn remaining(&self) -> usize {
        1
    }

    fn chunk(&self) -> &[u8] {
        &[0]
    }

    fn advance(&mut self, _: usize) {}

    #[track_caller]
    fn get_u8(&mut self) -> u8 {
        self.0 = Some(Location::caller().file());
        0
    }

    #[track_caller]
    fn copy_to_slice(&mut self, _: &mut [u8]) {
        self.0 = Some(Location::caller().file());
    }
}

/// A copy of a crate's source, with patches.
#[derive(Debug)]
pub struct Patched {
    source: PathBuf,
    copy: PathBuf,
}

impl Patched {
    /// Copies the source, anew, and applies patches in this order.
    ///
    /// # Panics
    ///
    /// If that cannot be done: which hunk of which file does not fit is said.
    #[must_use]
    pub fn make(source: PathBuf, copy: PathBuf, patches: &[PathBuf]) -> Self {
        if copy.exists() {
            fs::remove_dir_all(&copy).expect("the old copy goes");
        }
        copy_folder(&source.join("src"), &copy.join("src")).expect("the source is copied");
        for patch in patches {
            apply(patch, &copy).unwrap_or_else(|why| panic!("{}: {why}", patch.display()));
        }
        Self { source, copy }
    }

    /// Writes `src/items.rs`, the root of the crate from `first` on, its first item, which another
    /// crate can include: attributes of a crate cannot be. Copies a manifest and `others` too,
    /// which make the copy a crate of its own, which an IDE can open.
    pub fn write_crate(&self, first: &str, others: &[&str]) -> io::Result<()> {
        let text = fs::read_to_string(self.copy.join("src/lib.rs"))?;
        let items = text.find(first).expect("where items begin");
        fs::write(self.copy.join("src/items.rs"), &text[items..])?;
        let manifest = fs::read_to_string(self.source.join("Cargo.toml"))?;
        // It is no member of the workspace that it lies in.
        fs::write(self.copy.join("Cargo.toml"), manifest + "\n[workspace]\n")?;
        for name in others {
            let from = self.source.join(name);
            if from.is_dir() {
                copy_folder(&from, &self.copy.join(name))?;
            } else {
                fs::write(self.copy.join(name), fs::read(from)?)?;
            }
        }
        Ok(())
    }
}

/// The patches of a folder, in the order of their names.
///
/// # Panics
///
/// If there is no such folder.
#[must_use]
pub fn patches(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder of patches");
    let files = entries.map(|entry| entry.expect("an entry of the folder").path());
    let mut found: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|it| it == "patch"))
        .collect();
    found.sort();
    found
}

/// Applies a patch to the copy, or says which hunk of which file does not fit.
fn apply(patch: &Path, copy: &Path) -> Result<(), String> {
    let text = fs::read_to_string(patch).map_err(|error| error.to_string())?;
    for part in PatchSet::parse(&text, ParseOptions::unidiff()) {
        apply_to_file(&part.map_err(|error| error.to_string())?, copy)?;
    }
    Ok(())
}

fn apply_to_file(part: &FilePatch<'_, str>, copy: &Path) -> Result<(), String> {
    let hunks = part.patch().as_text().expect("unified diffs are of text");
    let name = hunks.modified().unwrap_or_default();
    let name = name.strip_prefix("b/").unwrap_or(name);
    let wrong = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let file = copy.join(name);
    let text = fs::read_to_string(&file).map_err(|error| wrong(&error))?;
    let text = diffy::apply(&text, hunks).map_err(|error| wrong(&error))?;
    fs::write(&file, text).map_err(|error| wrong(&error))
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::write(target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}
