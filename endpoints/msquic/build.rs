//! The program finds `MsQuic`'s library from where it lies itself: `build.sh` puts both into one
//! folder.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,-rpath,$ORIGIN/../lib");
}
