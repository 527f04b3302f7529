//! The fields of a segment that are kept until it is translated into frames.

use super::multipath::Multipath;

/// SACK blocks, as many as the options of a header have room for.
pub type SackBlocks = [Option<(u32, u32)>; 4];

/// The header of a segment, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags are those of the header"
)]
pub struct Header {
    /// Sequence number of the first byte, or of the SYN.
    pub sequence: u32,
    /// The ACK field, if it is valid.
    pub acknowledgment: Option<u32>,
    /// The SYN bit.
    pub syn: bool,
    /// The FIN bit.
    pub fin: bool,
    /// The RST bit.
    pub rst: bool,
    /// The ECE bit: ECN-Echo (RFC 3168 section 6.1).
    pub ece: bool,
    /// The CWR bit: congestion window reduced (RFC 3168 section 6.1).
    pub cwr: bool,
    /// The AE bit (RFC 9768 section 3.1); set in a SYN, it asks for accurate ECN.
    pub ae: bool,
    /// The window in the header, not scaled.
    pub window: u16,
    /// Bytes of payload on the wire.
    pub length: u32,
    /// Maximum segment size, RFC 9293 section 3.7.1.
    pub mss: Option<u16>,
    /// Window scale option, RFC 7323 section 2.2.
    pub window_scale: Option<u8>,
    /// Timestamp and timestamp echo, RFC 7323 section 3.2.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks, RFC 2018: from the first byte to the one behind the last. Few segments have
    /// some.
    pub sack: Option<Box<SackBlocks>>,
    /// The option of MPTCP, RFC 8684. Few connections have it.
    pub multipath: Option<Box<Multipath>>,
}

impl Header {
    /// The length of its part of the sequence space: payload, SYN and FIN.
    #[must_use]
    pub fn extent(&self) -> u32 {
        // A packet's payload is far below 4 GiB.
        self.length + u32::from(self.syn) + u32::from(self.fin)
    }
}
