//! h3 0.0.8 with patches: `README.md` says which.

#![allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    reason = "the code is upstream's"
)]

include!(concat!(env!("OUT_DIR"), "/h3/src/items.rs"));
