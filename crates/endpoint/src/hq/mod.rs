//! `hq-interop`, HTTP/0.9 over QUIC streams (`endpoints/CONTRACT.md`), over any
//! [`Stack`](crate::Stack).

mod client;
mod request;
mod server;
mod upload;

pub use client::Client;
pub use server::Server;

/// The application error code for requests that cannot be answered, and for replies nobody wants.
pub const REFUSED: u32 = 1;
/// A request line longer than this is none.
const LONGEST_QUESTION: usize = 4096;
