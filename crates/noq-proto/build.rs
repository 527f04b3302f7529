//! Copies the source of noq-proto from where cargo keeps it, and applies `patches/*.patch`.
//!
//! With `BENTPIPE_NOQ_PLAIN` set in the environment, nothing is fixed: that shows what happens
//! without. The additions are there all the same.

use std::panic::Location;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use bytes::Buf;
use diffy::patch_set::{FilePatch, ParseOptions, PatchSet};
use noq_proto::ConnectionId;

/// Patches that fix nothing, but that code here needs.
const ADDITIONS: [&str; 2] = ["noq-streams.patch", "noq-wanted-acks.patch"];

fn main() {
    println!("cargo::rerun-if-env-changed=BENTPIPE_NOQ_PLAIN");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=patches");
    let copy = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("noq-proto");
    if copy.exists() {
        fs::remove_dir_all(&copy).expect("the old copy goes");
    }
    let source = source();
    copy_folder(&source.join("src"), &copy.join("src")).expect("the source is copied");
    for patch in patches() {
        apply(&patch, &copy).unwrap_or_else(|why| panic!("{}: {why}", patch.display()));
    }
    write_crate(&source, &copy).expect("the copy is written");
}

/// The patches, in the order of their names.
fn patches() -> Vec<PathBuf> {
    let entries = fs::read_dir("patches").expect("the folder of patches");
    let files = entries.map(|entry| entry.expect("an entry of the folder").path());
    let is_plain = env::var_os("BENTPIPE_NOQ_PLAIN").is_some();
    let mut found: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|it| it == "patch"))
        .filter(|file| !is_plain || ADDITIONS.iter().any(|name| file.ends_with(name)))
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

/// Writes what `src/lib.rs` includes, and the manifest and licences that make the copy a crate of
/// its own, which an IDE can open: `README.md`.
fn write_crate(source: &Path, copy: &Path) -> io::Result<()> {
    // Attributes of a crate cannot be included; src/lib.rs has them.
    let text = fs::read_to_string(copy.join("src/lib.rs"))?;
    let items = text.find("extern crate alloc;").expect("where items begin");
    fs::write(copy.join("src/items.rs"), &text[items..])?;
    let manifest = fs::read_to_string(source.join("Cargo.toml"))?;
    // It is no member of the workspace that it lies in.
    fs::write(copy.join("Cargo.toml"), manifest + "\n[workspace]\n")?;
    for file in ["Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT"] {
        fs::write(copy.join(file), fs::read(source.join(file))?)?;
    }
    copy_folder(&source.join("benches"), &copy.join("benches"))
}

/// The folder of the published source, wherever cargo has it: in its registry, or vendored.
///
/// cargo says nowhere where that is, but the compiler has put it into the library: whoever is
/// called by the library can ask.
fn source() -> PathBuf {
    let mut caller = Caller(None);
    ConnectionId::from_buf(&mut caller, 0);
    let file = Path::new(caller.0.expect("the library copies from the buffer"));
    let folder = file.ancestors().find(|it| it.join("Cargo.toml").is_file());
    folder.map(Path::to_owned).unwrap_or_else(|| {
        let what = "the source of noq-proto was compiled under another name";
        panic!(
            "{}: {what} (--remap-path-prefix, trim-paths?)",
            file.display()
        )
    })
}

/// An empty buffer that notes in which file it is read.
struct Caller(Option<&'static str>);

impl Buf for Caller {
    fn remaining(&self) -> usize {
        0
    }

    fn chunk(&self) -> &[u8] {
        &[]
    }

    fn advance(&mut self, _: usize) {}

    #[track_caller]
    fn copy_to_slice(&mut self, _: &mut [u8]) {
        self.0 = Some(Location::caller().file());
    }
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
