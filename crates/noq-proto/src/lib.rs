//! noq-proto 1.4.0 with patches: `README.md` says which, and how to open the source that this
//! includes.

#![no_std]
#![allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    reason = "the code is upstream's"
)]

include!(concat!(env!("OUT_DIR"), "/noq-proto/src/items.rs"));
