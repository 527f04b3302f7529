//! noq-proto 1.4.0, mended: `build.rs` says what and how.

#![no_std]
#![allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    reason = "the code is upstream's"
)]

include!(concat!(env!("OUT_DIR"), "/src/lib.rs"));
