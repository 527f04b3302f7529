//! noq-proto 1.4.0, mended: `README.md` says how, and how to open the source that this includes.

#![no_std]
#![allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    reason = "the code is upstream's"
)]

include!(concat!(env!("OUT_DIR"), "/noq-proto/src/items.rs"));
