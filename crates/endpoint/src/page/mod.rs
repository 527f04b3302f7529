//! Pages and live streams: what is asked for when, and what has come of it
//! (`endpoints/contract/pages.md`, `endpoints/contract/media.md`).

mod discovery;
mod load;
mod player;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::load::PageLoad;

/// The number of connections that browsers open to a server over HTTP/1.1.
pub const HTTP1_CONNECTIONS: usize = 6;

/// The highest rate of a live stream.
const MOST_RATE_BPS: u64 = 10_000_000_000;
/// The longest segment.
const MOST_SEGMENT_MS: u64 = 3_600_000;
/// The most segments that are made when a client begins.
const MOST_INITIAL: u64 = 1000;

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

/// A live stream, as far as a client has to know of it. Its requests are segments in their order,
/// each at every rate, the lowest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveStream {
    /// The duration of a segment, in milliseconds.
    pub segment_ms: u64,
    /// The number of segments that are made when the client begins.
    pub initial_segments: u64,
    /// The rates of segments, in bits per second, the lowest first: a link of that rate plays them
    /// as they come.
    pub rates_bps: Vec<u64>,
}

impl LiveStream {
    /// Bytes of a segment at a rate, rounded down.
    #[must_use]
    pub fn segment_bytes(&self, rate_bps: u64) -> u64 {
        rate_bps * self.segment_ms / 8000
    }

    /// The time at which a segment is made, from the start of the client on.
    #[must_use]
    pub fn made(&self, segment: u64) -> Duration {
        let made_after = (segment + 1).saturating_sub(self.initial_segments);
        Duration::from_millis(made_after * self.segment_ms)
    }

    /// The problem with a stream of `requests` requests, if there is one.
    #[must_use]
    pub fn problem(&self, requests: usize) -> Option<String> {
        let rates = &self.rates_bps;
        let problem = if rates.is_empty() || !rates.is_sorted() {
            "rates_bps: there must be one, and the lowest first".to_owned()
        } else if !(1..=MOST_RATE_BPS).contains(&rates[0]) || rates[rates.len() - 1] > MOST_RATE_BPS
        {
            format!("rates_bps: they are 1 to {MOST_RATE_BPS}")
        } else if !(1..=MOST_SEGMENT_MS).contains(&self.segment_ms) {
            format!("segment_ms: it is 1 to {MOST_SEGMENT_MS}")
        } else if !(1..=MOST_INITIAL).contains(&self.initial_segments) {
            format!("initial_segments: it is 1 to {MOST_INITIAL}")
        } else if !requests.is_multiple_of(rates.len()) {
            "there must be a request for each segment at each rate".to_owned()
        } else {
            return None;
        };
        Some(problem)
    }
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

/// The schedule of requests: which is sent when.
trait Plan: fmt::Debug {
    /// The client begins.
    fn start(&mut self, now: Duration);

    /// The number of the next request, if one is to be made: it is under way then.
    fn ask(&mut self, now: Duration) -> Option<usize>;

    /// How many are to be asked for as soon as that can be.
    fn ready(&mut self, now: Duration) -> usize;

    /// How many were asked for and have not ended.
    fn under_way(&self) -> usize;

    /// Counts bytes of a reply that have arrived.
    fn arrived(&mut self, now: Duration, number: usize, bytes: u64);

    /// A reply has come to its end; `None`: not whole.
    fn ended(&mut self, now: Duration, number: usize, came: Option<Delivery>);

    /// When there is more to be asked for, though nothing comes.
    fn next_wake(&self, now: Duration) -> Option<Duration>;

    /// Whether all that was to be asked for has ended.
    fn is_done(&self) -> bool;
}

/// The delivery of a reply that came whole.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    /// From the first byte of the response to the last one.
    took: Duration,
    bytes: u64,
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
