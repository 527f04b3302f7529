//! Copies the source of h3 from where cargo keeps it, and applies `patches/*.patch`.

use std::env;
use std::path::PathBuf;

use bentpipe_patched_source::{patches, Caller, Patched};
use h3::proto::varint::VarInt;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=patches");
    let mut caller = Caller::default();
    // Of an integer, only where it is read matters.
    let _ = VarInt::decode(&mut caller);
    let copy = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("h3");
    Patched::make(caller.source(), copy, &patches("patches"))
        .write_crate("pub mod client;", &["Cargo.lock", "LICENSE"])
        .expect("the copy is written");
}
