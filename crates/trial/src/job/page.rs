//! Pages, as a job has them.

use bentpipe_endpoint::Resource;
use serde::{Deserialize, Serialize};

/// The type of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceType {
    /// The page itself.
    Document,
    /// It blocks rendering, and scripts behind it.
    Stylesheet,
    /// It blocks the parser.
    Script,
    /// Of text.
    Font,
    /// A picture.
    Image,
    /// Audio or video.
    Media,
    /// The reply to a request of a script.
    Fetch,
    /// Anything else.
    Other,
}

/// A resource of a page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageResource {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ResourceType,
    /// The size of its body.
    pub bytes: u64,
    /// The number of the resource that leads to it, from 0; `None`: the page begins with it.
    pub initiator: Option<usize>,
    /// Bytes of the initiator that must have come before it is found; `None`: all, with their end.
    pub found_after_bytes: Option<u64>,
    /// From then until it is asked for, in milliseconds.
    pub wait_ms: u64,
    /// 0 to 7, the lowest first (RFC 9218, section 4.1).
    pub urgency: u8,
    /// Whether it is of use before all of it is there (RFC 9218, section 4.2).
    pub incremental: bool,
}

impl PageResource {
    /// A segment of a live stream.
    #[must_use]
    pub fn segment(bytes: u64) -> Self {
        Self {
            kind: ResourceType::Media,
            bytes,
            initiator: None,
            found_after_bytes: None,
            wait_ms: 0,
            urgency: 3,
            incremental: false,
        }
    }

    /// The conditions under which a client requests it, in the form of HELLO.
    #[must_use]
    pub fn discovery(&self) -> Resource {
        Resource {
            initiator: self.initiator,
            found_after_bytes: self.found_after_bytes,
            wait_ms: self.wait_ms,
            urgency: self.urgency,
            incremental: self.incremental,
        }
    }

    /// True of a stylesheet or script to which the document, the first resource, leads.
    #[must_use]
    pub fn is_of_document(&self) -> bool {
        let kind = matches!(self.kind, ResourceType::Stylesheet | ResourceType::Script);
        kind && self.initiator == Some(0)
    }
}
