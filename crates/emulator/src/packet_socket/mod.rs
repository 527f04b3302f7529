//! A device's frames through a packet socket.

pub(crate) mod packet_port;
pub(crate) mod receive_ring;
pub(crate) mod socket_options;
