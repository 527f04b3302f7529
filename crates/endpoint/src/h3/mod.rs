//! HTTP/3 (RFC 9114) over any [`Stack`](crate::Stack): files and pages.

mod client;
mod server;
mod transport;

pub use client::Client;
pub use server::Server;

/// `H3_NO_ERROR` (RFC 9114, section 8.1).
const NO_ERROR: u32 = 0x100;
