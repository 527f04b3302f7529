//! The linker puts the program between tquic and one function of its TLS library: `src/signatures.rs` says why.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,--wrap=SSL_CTX_new");
}
