//! Four hosts in a row, and the emulator between them.

use bentpipe_link::SegmentName;

/// The hosts of a scenario and what connects them.
#[derive(Debug)]
pub struct Topology;

/// The emulator's two devices of one segment, in the emulator's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPorts {
    /// Which segment.
    pub name: SegmentName,
    /// The device towards the client.
    pub client_side: String,
    /// The device towards the server.
    pub server_side: String,
}
