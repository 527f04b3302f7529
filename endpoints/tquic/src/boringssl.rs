//! Changes to tquic's `BoringSSL`: the linker renames its calls of these functions (`--wrap`, see
//! `build.rs`).
//!
//! **Ed25519 for clients.** The trial's certificate has an Ed25519 key, because such signatures
//! have a fixed length. `BoringSSL` verifies them, but a client does not offer them by
//! default, and tquic neither sets this nor gives access to the `SSL_CTX`.
//!
//! **TLS secrets.** tquic starts a client's handshake before anybody can tell it where secrets go,
//! so that of early data would be missing. All go to one file anyway.
//!
//! **The processor's random numbers.** On Intel's processors `BoringSSL` stirs RDRAND into every
//! draw from its generator. Without that, what it draws hangs on its seed alone, which comes from
//! `getrandom`. (`OPENSSL_ia32cap` would take RDRAND away, too, but this `BoringSSL` reads it
//! before `main` starts.)

#![expect(
    unsafe_code,
    reason = "taking the place of a C function needs its calling convention"
)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::sync::OnceLock;

use bentpipe_endpoint::LogFile;

/// The signature algorithms that a client accepts from the server (RFC 8446, section 4.2.3):
/// ed25519, then `BoringSSL`'s list as far as TLS 1.3 allows it there.
const ACCEPTED: [u16; 6] = [0x0807, 0x0403, 0x0804, 0x0503, 0x0805, 0x0806];

/// Where TLS secrets go.
static SECRETS: OnceLock<LogFile> = OnceLock::new();

type KeylogCallback = unsafe extern "C" fn(*const c_void, *const c_char);

/// From now on the TLS secrets of all connections go to `file`.
pub fn log_secrets_to(file: LogFile) {
    assert!(SECRETS.set(file).is_ok(), "a program is one endpoint");
}

unsafe extern "C" {
    fn __real_SSL_CTX_new(method: *const c_void) -> *mut c_void;
    fn SSL_CTX_set_verify_algorithm_prefs(
        context: *mut c_void,
        preferences: *const u16,
        count: usize,
    ) -> c_int;
    fn __real_SSL_CTX_set_keylog_callback(context: *mut c_void, callback: KeylogCallback);
}

/// Takes the place of its `SSL_CTX_new`.
///
/// # Safety
/// As that function: `method` comes from `BoringSSL`.
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

/// Takes the place of `BoringSSL`'s function, and of tquic's callback.
///
/// # Safety
/// As that function: `context` comes from `BoringSSL`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_SSL_CTX_set_keylog_callback(
    context: *mut c_void,
    _callback: KeylogCallback,
) {
    // SAFETY: the context is the caller's.
    unsafe { __real_SSL_CTX_set_keylog_callback(context, log_secret) }
}

unsafe extern "C" fn log_secret(_connection: *const c_void, line: *const c_char) {
    if let Some(file) = SECRETS.get() {
        // SAFETY: BoringSSL gives a string, which lives as long as this call.
        let line = unsafe { CStr::from_ptr(line) }.to_bytes();
        // A full disk shows again, as an error, when the file is completed.
        let _ = file.clone().write_all(&[line, b"\n"].concat());
    }
}

/// Takes the place of `BoringSSL`'s function: the processor has no random numbers at the moment.
#[unsafe(no_mangle)]
extern "C" fn __wrap_CRYPTO_rdrand(_eight_bytes: *mut u8) -> c_int {
    0
}

/// As above.
#[unsafe(no_mangle)]
extern "C" fn __wrap_CRYPTO_rdrand_multiple8_buf(_bytes: *mut u8, _size: usize) -> c_int {
    0
}
