//! Copies the patched source to where it can be read, and opened as a crate:
//!
//! ```text
//! cargo run --release -p bentpipe-noq-proto --example patched_source -- target/noq-proto-patched
//! ```

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let Some(to) = env::args_os().nth(1) else {
        eprintln!("error: no folder was given\nhint: write one that does not exist yet");
        std::process::exit(2);
    };
    let built = Path::new(env!("OUT_DIR")).join("noq-proto");
    copy_folder(&built, Path::new(&to))?;
    // The file that this crate includes is the crate's own root without its attributes.
    fs::remove_file(Path::new(&to).join("src/items.rs"))
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
