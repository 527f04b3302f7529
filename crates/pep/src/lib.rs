//! A performance enhancing proxy for QUIC: it ends the connections of its clients and carries what they bear over connections of its own.
//!
//! No socket and no clock: a [`Proxy`] is given datagrams and the time, and returns datagrams and when it wants to be called next.
//! It has two sides. On the *client side*, towards the client, it is a QUIC server; on the *server side*, towards the server, it is a QUIC
//! client of the *next hop*, which is the next proxy or the server.

mod admission;
mod arrivals;
mod aside;
mod closing;
mod config;
mod connections;
mod course;
mod crypto;
mod ending;
mod error;
mod event;
mod flow;
mod forwarding;
mod hello;
mod initial;
mod opening;
mod pair;
mod pool;
mod proxy;
mod reader;
mod relay;
mod seats;
mod sessions;
mod statistics;
mod warming;
mod words;

pub use closing::Code;
pub use config::{Auto, Config, ConnectionIds, Hop, Limits, Mode, NextHop, Warm, Window};
pub use error::PepError;
pub use event::{Event, Number, Refusal, Why};
pub use proxy::{Proxy, Side};
pub use seats::{Most, Seat, Seats};
pub use statistics::{Kind, Metric, Statistics};
pub use words::{Basis, Place, from_words};
