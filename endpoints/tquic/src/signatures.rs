//! Ed25519 for clients.
//!
//! The trial's certificate has an Ed25519 key, because such signatures have a fixed length. tquic's BoringSSL verifies them, but a client
//! does not offer to unless it is told (`SSL_CTX_set_verify_algorithm_prefs`), and tquic neither tells it nor lets anybody else
//! at the `SSL_CTX`. So the linker renames tquic's calls of `SSL_CTX_new` to the function below (`--wrap`, see `build.rs`).

#![expect(unsafe_code, reason = "two functions of BoringSSL are called")]

use std::ffi::{c_int, c_void};

/// What a client accepts in the server's CertificateVerify (RFC 8446, section 4.2.3): ed25519, then BoringSSL's own list
/// without what TLS 1.3 forbids there.
const ACCEPTED: [u16; 6] = [0x0807, 0x0403, 0x0804, 0x0503, 0x0805, 0x0806];

unsafe extern "C" {
    fn __real_SSL_CTX_new(method: *const c_void) -> *mut c_void;
    fn SSL_CTX_set_verify_algorithm_prefs(
        context: *mut c_void,
        preferences: *const u16,
        count: usize,
    ) -> c_int;
}

/// Takes the place of BoringSSL's `SSL_CTX_new`.
///
/// # Safety
/// As that function: `method` comes from BoringSSL.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_SSL_CTX_new(method: *const c_void) -> *mut c_void {
    // SAFETY: the method is the caller's; the context is new, and the list is copied.
    unsafe {
        let context = __real_SSL_CTX_new(method);
        if !context.is_null() {
            let done =
                SSL_CTX_set_verify_algorithm_prefs(context, ACCEPTED.as_ptr(), ACCEPTED.len());
            assert_eq!(done, 1, "BoringSSL knows these algorithms");
        }
        context
    }
}
