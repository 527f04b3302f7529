//! quinn and noq as a [`Stack`](bentpipe_endpoint::Stack).
//!
//! noq is a fork of quinn: names and behaviour of the two are the same in all that is used here,
//! but their types are not. So this source is two crates, `bentpipe-quinn-adapter` and
//! `bentpipe-noq-adapter`, whose manifests say which library [`proto`] is. What the libraries
//! differ in is a [`Library`], which the users of the two crates implement.
//!
//! A trait over all that is used of a library would have some forty methods and twenty types, most
//! of them implemented twice in the same words.

mod adapter;
mod client;
mod inbox;
mod library;
mod options;

pub use proto;

pub use self::{
    adapter::{Adapter, to_transmit},
    client::Client,
    library::{ChosenController, Library, PathMemory, ReadOrder, Report, Tuning},
    options::apply,
};
