//! The evidence that a trial leaves: what its testbed saw pass, and what its programs left.
//!
//! It is kept and decoded here; nothing is judged.

mod decoded;
mod drawing;
mod end_to_end;
mod hop;
mod link_events;
mod packet;
mod packet_hash;
mod packet_log;
mod program;
mod requests;
mod testbed;
mod trace;

pub use self::decoded::DecodedConnection;
pub(crate) use self::decoded::HopDecoder;
pub use self::drawing::{Drawing, Moments};
pub use self::end_to_end::{count_fates, flow_number};
pub use self::hop::HopObservation;
pub(crate) use self::hop::on_wire;
pub(crate) use self::link_events::{link_events, write as write_link_events};
pub use self::packet::{IpPacket, Packet, Transport};
pub use self::packet_log::PacketLog;
pub use self::program::{ProcessExit, ProgramExit, SentMessage};
pub use self::testbed::{
    FlowLifetime, HopPackets, KnownEvents, LinkObservation, TestbedObservation, TunnelObservation,
};
pub use self::trace::HopTrace;
