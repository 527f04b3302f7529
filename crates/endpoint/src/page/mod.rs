//! Pages and live streams: what is asked for when, and what has come of it (contract, section 2).

mod discovery;
mod load;
mod player;

use serde::{Deserialize, Serialize};

pub use self::load::PageLoad;

/// As many connections browsers have to a server over HTTP/1.1.
pub const HTTP1_CONNECTIONS: usize = 6;

/// A resource of a page, as far as a client has to know of it before it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
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

/// A live stream, as far as a client has to know of it. Its requests are segments in their order, each at every rate,
/// the lowest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveStream {
    /// For how long a segment plays, in milliseconds.
    pub segment_ms: u64,
    /// So many segments are there when the client begins.
    pub there: u64,
    /// What segments take to be played as they come, in bits per second, the lowest first.
    pub rates_bps: Vec<u64>,
}

impl Resource {
    /// One that nothing leads to.
    pub(crate) const FIRST: Self = Self {
        initiator: None,
        found_after_bytes: None,
        wait_ms: 0,
        urgency: 3,
        incremental: false,
    };

    /// The value of the header `priority` (RFC 9218, section 5).
    #[must_use]
    pub fn priority(&self) -> String {
        let incremental = if self.incremental { ", i" } else { "" };
        format!("u={}{incremental}", self.urgency)
    }
}

/// The headers that a browser sends with every request, by their names, and `priority`: HTTP/1.1
/// carries them as they are, the others compressed.
pub fn browser_headers(priority: String) -> impl Iterator<Item = (&'static str, String)> {
    let fixed = [
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) Bentpipe/1.0"),
        ("accept", "*/*"),
        ("accept-encoding", "identity"),
        ("accept-language", "en-US,en;q=0.9"),
    ];
    let fixed = fixed.map(|(name, value)| (name, value.to_owned()));
    fixed.into_iter().chain([("priority", priority)])
}
