//! Media frames with deadlines (`endpoints/contract/media.md`): who makes and sends them, and who
//! watches.

mod header;
mod publisher;
mod viewer;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::publisher::Publisher;
pub use self::viewer::Viewer;

/// A viewer's request.
const QUESTION: &[u8] = b"GET /frames\r\n";
/// The error code of a frame whose time is over.
const EXPIRED: u32 = 1;
/// The error code of what nobody asked for.
const REFUSED: u32 = 2;

const MOST_INTERVAL_US: u64 = 60_000_000;
const MOST_DEADLINE_MS: u64 = 3_600_000;
/// The most frames of a stream: its last moment is well within 64 bits of nanoseconds.
const MOST_FRAMES: usize = 1_000_000;

/// A stream of frames, as both ends know it. The requests name its frames, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameStream {
    /// The time from one frame to the next, in microseconds.
    pub interval_us: u64,
    /// A frame is of use for so long after it was made, in milliseconds.
    pub deadline_ms: u64,
    /// The carrier of the frames.
    pub over: Carrier,
}

/// The word for what carries frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// Each has a separate unidirectional stream.
    Streams,
    /// DATAGRAM frames (RFC 9221), as many as each needs.
    Datagrams,
}

impl FrameStream {
    /// The time from one frame to the next.
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::from_micros(self.interval_us)
    }

    /// The age until which a frame is of use.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// The time at which a frame is made, from the first one on.
    #[must_use]
    pub fn made(&self, number: usize) -> Duration {
        let number = u32::try_from(number).expect("a stream has fewer frames");
        self.interval() * number
    }

    /// The deadline of the last of `frames` frames, from the time at which the first one is made.
    #[must_use]
    pub fn end(&self, frames: usize) -> Duration {
        self.made(frames.saturating_sub(1)) + self.deadline()
    }

    /// The problem with a stream of `requests` requests, if there is one.
    #[must_use]
    pub fn problem(&self, requests: usize) -> Option<String> {
        let problem = if !(1..=MOST_INTERVAL_US).contains(&self.interval_us) {
            format!("interval_us: it is 1 to {MOST_INTERVAL_US}")
        } else if !(1..=MOST_DEADLINE_MS).contains(&self.deadline_ms) {
            format!("deadline_ms: it is 1 to {MOST_DEADLINE_MS}")
        } else if !(1..=MOST_FRAMES).contains(&requests) {
            format!("both sides need a request for each frame, 1 to {MOST_FRAMES}")
        } else {
            return None;
        };
        Some(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_its_frames_within_its_ranges() {
        let stream = FrameStream {
            interval_us: 40_000,
            deadline_ms: 400,
            over: Carrier::Streams,
        };
        assert_eq!(stream.problem(3), None);
        assert_eq!(stream.made(2), Duration::from_millis(80));
        assert_eq!(stream.end(3), Duration::from_millis(480));
        let wrong = |stream: &FrameStream, requests| stream.problem(requests).unwrap_or_default();
        assert!(wrong(&stream, 0).contains("a request for each frame"));
        assert!(wrong(&stream, MOST_FRAMES + 1).contains("a request for each frame"));
        let for_ever = FrameStream {
            deadline_ms: u64::MAX,
            ..stream.clone()
        };
        assert_eq!(wrong(&for_ever, 3), "deadline_ms: it is 1 to 3600000");
        let at_once = FrameStream {
            interval_us: 0,
            ..stream
        };
        assert_eq!(wrong(&at_once, 3), "interval_us: it is 1 to 60000000");
    }
}
