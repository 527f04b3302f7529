//! quiche as an endpoint program (`endpoints/CONTRACT.md`).

mod acks;
mod config;
mod connection;
mod stack;

use std::env;
use std::process::ExitCode;

/// `BoringSSL` mixes the processor's RDRAND into its random bytes, which no seed decides. It looks
/// at this variable when it first asks what the processor can do; the value takes RDRAND (bit 62)
/// away.
const WITHOUT_RDRAND: (&str, &str) = ("OPENSSL_ia32cap", "~0x4000000000000000");

#[expect(
    unsafe_code,
    reason = "an environment variable is what BoringSSL listens to"
)]
fn main() -> ExitCode {
    let (name, value) = WITHOUT_RDRAND;
    // SAFETY: there is no other thread yet.
    unsafe { env::set_var(name, value) };
    bentpipe_endpoint::run::<stack::Quiche>()
}
