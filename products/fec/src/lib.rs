//! A tunnel for datagrams that brings lost ones back without asking for them: forward error
//! correction, with random linear codes over a sliding window (RFC 8681) or Reed-Solomon codes over
//! interleaved blocks.
//!
//! At each end, [`Tunnel`] takes datagrams on one side and sends them on at once on the other, each
//! with a number, and between them repair packets: linear combinations of the latest datagrams. The
//! other end solves for what is missing. It knows no sockets and no clock; [`relay`] does, and
//! [`hop`] puts either into other middleboxes.

mod blocks;
mod coefficients;
mod equations;
mod gf256;
pub mod hop;
mod packet;
mod receiver;
pub mod relay;
mod requests;
mod sender;
mod settings;
mod store;
mod tunnel;
mod window;

pub use packet::Packet;
pub use settings::{Code, CodeRate, Settings};
pub use tunnel::{Departure, Side, Tunnel};
