//! Feeds an avoidance by hand, for tests.

use bentpipe_units::{Span, Time};

use crate::acks::{Acked, Acks, Congestion, Lost, RateSample};
use crate::avoidance::Avoidance;
use crate::path::{Path, Rtt};

/// A path that a test sets as it likes.
#[derive(Debug, Clone)]
pub struct Feed {
    pub path: Path,
    /// What the next ACKs measure.
    pub rate: Option<RateSample>,
    /// The next ACKs begin a round trip.
    pub new_round: bool,
}

impl Feed {
    pub fn new(datagram: u64, window: u64, rtt: Span) -> Self {
        let path = Path {
            now: Time::ZERO + Span::from_secs(10),
            datagram,
            rtt: Rtt {
                first: rtt,
                latest: rtt,
                min: rtt,
                smoothed: rtt,
                variation: Span::ZERO,
                samples: 1,
            },
            window,
            initial_window: 10 * datagram,
            ssthresh: None,
            in_flight: window,
            sent: 0,
            delivered: 0,
            lost: 0,
            round: 0,
            limited: false,
            paced: true,
        };
        Self {
            path,
            rate: None,
            new_round: false,
        }
    }

    /// One ACK of so many bytes; they are credited.
    pub fn ack(&mut self, avoidance: &mut impl Avoidance, bytes: u64) {
        self.path.delivered += bytes;
        let packet = Acked {
            sent: self.path.now - self.path.rtt.latest,
            bytes,
            delivered_before: 0,
            sent_before: 0,
        };
        let acks = Acks {
            now: self.path.now,
            packets: &[packet],
            bytes,
            credit: bytes,
            rtt: Some(self.path.rtt.latest),
            rate: self.rate,
            new_round: self.new_round,
        };
        self.path.window = avoidance.on_acks(&self.path, &acks);
    }

    /// A packet sent just now is lost; no congestion event yet.
    pub fn lose(&self, avoidance: &mut impl Avoidance) {
        let lost = Lost {
            now: self.path.now,
            sent: self.path.now,
            bytes: self.path.datagram,
            sent_before: 0,
        };
        avoidance.on_lost(&self.path, &lost);
    }

    /// The congestion event of such a packet.
    pub fn event(&self) -> Congestion {
        Congestion {
            now: self.path.now,
            sent: self.path.now,
            lost: self.path.datagram,
            ecn: false,
            persistent: false,
        }
    }

    /// That event happens.
    pub fn congest(&mut self, avoidance: &mut impl Avoidance) {
        let reduction = avoidance.on_congestion(&self.path, &self.event());
        self.path.window = reduction.window;
        self.path.ssthresh = Some(reduction.ssthresh);
    }
}
