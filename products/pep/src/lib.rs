//! A performance enhancing proxy for QUIC: it ends the connections of its clients and carries what
//! they bear over separate connections.
//!
//! No socket and no clock: a [`Proxy`] is given datagrams and the time, and returns datagrams and
//! when it wants to be called next. It has two sides. On the *client side*, towards the client, it
//! is a QUIC server; on the *server side*, towards the server, it is a QUIC client of the *next
//! hop*, which is the next proxy or the server.
//!
//! Its rooms, each with what it promises and what it must not know: `proxy` over `relay`, `pool`
//! and `bypass`, these over `handshake`, that over `connections`, and below all of them `config`,
//! `limits` and `events`.

mod bypass;
mod config;
mod connections;
mod events;
mod handshake;
mod limits;
mod pool;
mod proxy;
mod relay;

pub use config::{
    BypassRule, Config, ConfigContext, HandshakeMode, NextHop, PepError, Place, PoolConfig,
    SideConfig,
};
pub use connections::Socket;
pub use events::{ClosedBy, ConnectionNumber, Event, Refusal, Statistics};
pub use limits::{Limits, ReceiveWindow};
pub use proxy::Proxy;
pub use relay::CloseCode;
