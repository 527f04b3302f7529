//! Requests and replies over a stack that is made of maps.

mod client;
mod fake;
mod server;
