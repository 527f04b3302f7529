//! Requests and replies, and frames, over a stack that is made of maps.

mod client;
mod fake;
mod frames;
mod server;
