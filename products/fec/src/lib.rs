//! A tunnel for datagrams that brings lost ones back without asking for them: forward error
//! correction with a sliding window, random linear codes over GF(256) (RFC 8681).
//!
//! At each end, [`Tunnel`] takes datagrams on one side and sends them on at once on the other, each
//! with a number, and between them repair packets: linear combinations of the latest datagrams. The
//! other end solves for what is missing. It knows no sockets and no clock.

mod coefficients;
mod equations;
mod gf256;
mod packet;
mod receiver;
mod requests;
mod sender;
mod settings;
mod store;
mod tiny_mt;
mod tunnel;

pub use packet::Packet;
pub use settings::{CodeRate, Settings};
pub use tunnel::{Departure, Side, Tunnel};
