//! What tquic's BoringSSL does otherwise than its own: the linker renames its calls of these functions (`--wrap`, see `build.rs`).
//!
//! **Ed25519 for clients.** The trial's certificate has an Ed25519 key, because such signatures have a fixed length. BoringSSL
//! verifies them, but a client does not offer to unless it is told, and tquic neither tells it nor lets anybody else at the `SSL_CTX`.
//!
//! **The processor's random numbers.** On Intel's processors BoringSSL stirs RDRAND into every draw from its generator. Without that, what it
//! draws hangs on its seed alone, which comes from `getrandom`.

#![expect(
    unsafe_code,
    reason = "taking the place of a C function needs its calling convention"
)]

use std::ffi::{c_int, c_void};

/// What a client accepts as the server's signature (RFC 8446, section 4.2.3): ed25519, then BoringSSL's list as far as TLS 1.3
/// allows it there.
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

/// Takes the place of BoringSSL's function: the processor has no random numbers at the moment.
#[unsafe(no_mangle)]
extern "C" fn __wrap_CRYPTO_rdrand(_eight_bytes: *mut u8) -> c_int {
    0
}

/// As above.
#[unsafe(no_mangle)]
extern "C" fn __wrap_CRYPTO_rdrand_multiple8_buf(_bytes: *mut u8, _size: usize) -> c_int {
    0
}
