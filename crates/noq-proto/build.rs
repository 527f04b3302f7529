//! Copies the source of noq-proto from where cargo keeps it, and applies `patches/*.patch`.
//!
//! With `BENTPIPE_NOQ_PLAIN` set in the environment, nothing is fixed: that shows what happens
//! without. The additions are there all the same.

use std::env;
use std::path::PathBuf;

use bentpipe_patched_source::{Caller, Patched, patches};
use noq_proto::ConnectionId;

/// Patches that fix nothing, but that code here needs.
const ADDITIONS: [&str; 3] = [
    "noq-bdp.patch",
    "noq-streams.patch",
    "noq-wanted-acks.patch",
];

fn main() {
    println!("cargo::rerun-if-env-changed=BENTPIPE_NOQ_PLAIN");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=patches");
    let is_plain = env::var_os("BENTPIPE_NOQ_PLAIN").is_some();
    let mut patches = patches("patches");
    patches.retain(|file| !is_plain || ADDITIONS.iter().any(|name| file.ends_with(name)));
    let mut caller = Caller::default();
    ConnectionId::from_buf(&mut caller, 0);
    let copy = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("noq-proto");
    Patched::make(caller.source(), copy, &patches)
        .write_crate(
            "extern crate alloc;",
            &["Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT", "benches"],
        )
        .expect("the copy is written");
}
