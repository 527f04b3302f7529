//! What is known of a client before it is accepted, and TLS of both sides.
//!
//! Promises: the server name and the protocols that a client asks for are read from its Initial packets, in whatever pieces
//! they come, without believing a length in them. Knows packets and TLS; must not know what becomes of a client.

pub mod client_hello;
pub mod crypto;
pub mod incomplete_hello;
pub mod initial;
pub mod reader;
mod session_tickets;
