//! Says what version of rustls is locked, for what `--version` prints, and has the program be at a
//! fixed address: in a guest, each page that a start would relocate is a fault.

use std::fs;
use std::path::Path;

fn main() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(&lock).expect("the workspace is locked");
    let version = text
        .split("[[package]]")
        .find(|it| it.contains("\nname = \"rustls\"\n"))
        .and_then(|it| it.split("version = \"").nth(1)?.split('"').next())
        .expect("rustls is locked");
    println!("cargo::rustc-env=RUSTLS_VERSION={version}");
    println!("cargo::rustc-link-arg-bins=-no-pie");
}
