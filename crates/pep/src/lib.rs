//! A performance enhancing proxy for QUIC: it ends the connections of its clients and carries what they bear over connections of its own.
//!
//! No socket and no clock: a [`Proxy`] is given datagrams and the time, and returns datagrams and when it wants to be called next.
//! It has two sides. On the *client side*, towards the client, it is a QUIC server; on the *server side*, towards the server, it is a QUIC
//! client of the *next hop*, which is the next proxy or the server.

mod bypass;
mod config;
mod connections;
mod handshake;
mod limits;
mod pool;
mod proxy;
mod relay;

pub use config::error::PepError;
pub use config::options::{Basis, Place, from_words};
pub use config::{Auto, Config, ConnectionIds, Hop, Limits, Mode, NextHop, Warm, Window};
pub use limits::quota::{Most, Seat, Seats};
pub use proxy::event::{Event, Number, Refusal, Why};
pub use proxy::statistics::{Kind, Metric, Statistics};
pub use proxy::{Proxy, Side};
pub use relay::close::Code;
