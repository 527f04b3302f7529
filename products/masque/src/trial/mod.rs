//! An end in a trial (`endpoints/contract/middleboxes.md`): the client at the terminal, the proxy
//! at the gateway.

mod end;
mod job;
mod sockets;
mod virtual_time;

pub use sockets::run as over_sockets;
pub use virtual_time::run as in_virtual_time;
