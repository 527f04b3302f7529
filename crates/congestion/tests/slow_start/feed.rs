//! Tells a slow start of ACKs, one by one, without a controller.

use bentpipe_congestion::{Acked, Acks, Note, Path, Rtt, SlowStart, Step};
use bentpipe_units::{Span, Time};

pub const DATAGRAM: u64 = 1200;
pub const INITIAL_WINDOW: u64 = 10 * DATAGRAM;

pub struct Feed {
    pub path: Path,
    pub slow_start: Box<dyn SlowStart>,
}

impl Feed {
    /// On a path of this RTT, whose window is the initial one.
    pub fn new(slow_start: impl SlowStart + 'static, rtt_ms: u64) -> Self {
        let rtt = Span::from_millis(rtt_ms);
        let path = Path {
            now: Time::ZERO,
            datagram: DATAGRAM,
            rtt: Rtt {
                first: rtt,
                latest: rtt,
                min: rtt,
                smoothed: rtt,
                variation: Span::ZERO,
                samples: 1,
            },
            window: INITIAL_WINDOW,
            initial_window: INITIAL_WINDOW,
            ssthresh: None,
            in_flight: 0,
            sent: 0,
            delivered: 0,
            lost: 0,
            round: 0,
            limited: false,
            paced: true,
        };
        Self {
            path,
            slow_start: Box::new(slow_start),
        }
    }

    pub fn send(&mut self, bytes: u64) {
        self.path.sent += bytes;
        self.path.in_flight += bytes;
        self.slow_start.on_sent(&self.path, bytes);
    }

    /// An ACK of one packet, with an RTT sample, in the same round as the last one.
    pub fn ack(&mut self, at_ms: u64, bytes: u64, rtt_ms: u64) -> Step {
        self.tell(at_ms, bytes, rtt_ms, false)
    }

    /// The first ACK of a round.
    pub fn ack_of_a_new_round(&mut self, at_ms: u64, bytes: u64, rtt_ms: u64) -> Step {
        self.path.round += 1;
        self.tell(at_ms, bytes, rtt_ms, true)
    }

    fn tell(&mut self, at_ms: u64, bytes: u64, rtt_ms: u64, new_round: bool) -> Step {
        let (now, rtt) = (at(at_ms), Span::from_millis(rtt_ms));
        let packet = Acked {
            sent: now - rtt,
            bytes,
            delivered_before: 0,
            sent_before: 0,
        };
        self.path.now = now;
        self.path.delivered += bytes;
        self.path.in_flight = self.path.in_flight.saturating_sub(bytes);
        self.path.rtt.latest = rtt;
        self.path.rtt.min = self.path.rtt.min.min(rtt);
        let acks = Acks {
            now,
            packets: &[packet],
            bytes,
            credit: bytes,
            rtt: Some(rtt),
            rate: None,
            new_round,
        };
        let step = self.slow_start.on_acks(&self.path, &acks);
        match step {
            Step::Grow(bytes) => self.path.window += bytes,
            Step::Window(bytes) => self.path.window = bytes,
            Step::Leave(exit) => self.path.window = exit.window,
        }
        step
    }

    pub fn note(&mut self) -> Option<Note> {
        self.slow_start.take_note(&self.path)
    }
}

pub fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}
