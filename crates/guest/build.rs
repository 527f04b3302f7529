//! Has the program be at a fixed address: in a guest, each page that a start would relocate is a
//! fault.

fn main() {
    println!("cargo::rustc-link-arg-bins=-no-pie");
    println!("cargo::rerun-if-changed=build.rs");
}
