//! An end in a trial (`endpoints/contract/middleboxes.md`): the client at the terminal, the proxy
//! at the gateway.

mod device;
mod end;
mod job;
mod outer;
mod packets;
mod real_time;
mod repair;
mod sockets;
mod virtual_time;

pub use sockets::run as over_sockets;
pub use virtual_time::run as in_virtual_time;
