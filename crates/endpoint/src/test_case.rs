//! The test cases (`endpoints/contract/test-cases.md`).

use crate::error::EndpointError;
use crate::tickets::Resume;

/// A test case of the contract: what a client does, and what a server allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestCase {
    /// All requests are sent at once, over one connection.
    Transfer,
    /// As `Transfer`, with a small file.
    Handshake,
    /// As `Transfer`, over a path whose round trip is longer than a first PTO.
    LongRtt,
    /// As `Transfer`, with more requests than streams may be open at once.
    Multiplexing,
    /// A second connection with the first one's ticket.
    Resumption,
    /// As `Resumption`, with requests in 0-RTT packets.
    ZeroRtt,
    /// The client sends files.
    Upload,
    /// A page: its replies lead to further requests.
    Page,
    /// As `Page`, behind an earlier visit whose ticket it has.
    PageResumption,
    /// As `PageResumption`, with requests in 0-RTT packets.
    PageZeroRtt,
    /// Segments of a live stream, as they are made.
    Live,
    /// Frames with deadlines, which the server makes.
    Frames,
}

impl TestCase {
    /// All of them, in the contract's order.
    pub const ALL: [Self; 12] = [
        Self::Transfer,
        Self::Handshake,
        Self::LongRtt,
        Self::Multiplexing,
        Self::Resumption,
        Self::ZeroRtt,
        Self::Upload,
        Self::Page,
        Self::PageResumption,
        Self::PageZeroRtt,
        Self::Live,
        Self::Frames,
    ];

    /// The test cases that transfer files over `hq-interop`.
    pub const OF_FILES: [Self; 7] = [
        Self::Transfer,
        Self::Handshake,
        Self::LongRtt,
        Self::Multiplexing,
        Self::Resumption,
        Self::ZeroRtt,
        Self::Upload,
    ];

    /// Reads the contract's word for it.
    pub(crate) fn parse(text: &str) -> Result<Self, EndpointError> {
        let found = Self::ALL.into_iter().find(|case| case.name() == text);
        found.ok_or_else(|| EndpointError::Unsupported(format!("test case {text:?}: unknown")))
    }

    /// Whether a page is loaded in it.
    #[must_use]
    pub fn is_of_page(self) -> bool {
        matches!(self, Self::Page | Self::PageResumption | Self::PageZeroRtt)
    }

    /// Whether it is one of HTTP/1.1, 2 and 3 alone.
    #[must_use]
    pub fn is_of_http(self) -> bool {
        self.is_of_page() || self == Self::Live
    }

    /// The start of its second connection; `Nothing`: it has one alone. The first request has a
    /// connection of its own before a second one.
    #[must_use]
    pub fn resume(self) -> Resume {
        match self {
            Self::Resumption | Self::PageResumption => Resume::Session,
            Self::ZeroRtt | Self::PageZeroRtt => Resume::EarlyData,
            _ => Resume::Nothing,
        }
    }

    /// The contract's word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Transfer => "transfer",
            Self::Handshake => "handshake",
            Self::LongRtt => "longrtt",
            Self::Multiplexing => "multiplexing",
            Self::Resumption => "resumption",
            Self::ZeroRtt => "zerortt",
            Self::Upload => "upload",
            Self::Page => "page",
            Self::PageResumption => "page-resumption",
            Self::PageZeroRtt => "page-zerortt",
            Self::Live => "live",
            Self::Frames => "frames",
        }
    }
}
