//! What was on the wire in a trial.
//!
//! A trace is one pcapng file with an interface per side: a packet stands on the sender's interface at the time of its
//! departure and, unless it was dropped or lost, on the receiver's at the time of its arrival. The TLS secrets are
//! inside, so Wireshark and tshark open it decrypted.

mod ip;
mod pcapng;

pub use ip::{Endpoints, IPV4_UDP_HEADER, encapsulate};
pub use pcapng::{Interface, Writer};
