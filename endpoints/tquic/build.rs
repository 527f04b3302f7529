//! The linker puts the program between tquic's `BoringSSL` and some of its functions:
//! `src/boringssl.rs` says why.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for function in [
        "SSL_CTX_new",
        "SSL_CTX_set_keylog_callback",
        "CRYPTO_rdrand",
        "CRYPTO_rdrand_multiple8_buf",
    ] {
        println!("cargo::rustc-link-arg-bins=-Wl,--wrap={function}");
    }
}
