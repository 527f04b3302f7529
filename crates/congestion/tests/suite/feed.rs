//! Tells a slow start or a congestion avoidance of ACKs and losses, one by one, without a
//! controller.

use bentpipe_congestion::{
    AckedPacket, Acks, Avoidance, CongestionEvent, LogEvent, LostPacket, PathState, RateSample,
    Response, Rtt, SlowStart, Step,
};
use bentpipe_units::{Span, Time};

pub const DATAGRAM: u64 = 1200;
pub const INITIAL_WINDOW: u64 = 10 * DATAGRAM;

/// A path that a test sets as it likes, and the algorithm that is told of it.
pub struct Feed<A: ?Sized = dyn SlowStart> {
    pub path: PathState,
    /// The RTT that the next ACKs measure.
    pub rate: Option<RateSample>,
    /// The next ACKs begin a round trip.
    pub new_round: bool,
    /// The bytes sent when the packet left that is acknowledged next.
    pub sent_before: u64,
    pub algorithm: Box<A>,
}

impl<A: ?Sized> Feed<A> {
    fn on(algorithm: Box<A>, datagram: u64, rtt: Span) -> Self {
        let path = PathState {
            now: Time::ZERO,
            datagram,
            rtt: Rtt {
                first: rtt,
                latest: rtt,
                min: rtt,
                smoothed: rtt,
                variation: Span::ZERO,
                samples: 1,
            },
            window: 10 * datagram,
            initial_window: 10 * datagram,
            ssthresh: None,
            in_flight: 0,
            sent: 0,
            burst: 0,
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
            sent_before: 0,
            algorithm,
        }
    }

    /// One ACK of one packet of so many bytes, now, with the latest RTT; they are credited.
    fn tell<R>(&mut self, bytes: u64, hear: impl Fn(&mut A, &PathState, &Acks<'_>) -> R) -> R {
        self.path.delivered += bytes;
        self.path.in_flight = self.path.in_flight.saturating_sub(bytes);
        let rtt = self.path.rtt.latest;
        let packet = AckedPacket {
            sent: self.path.now - rtt,
            bytes,
            delivered_before: 0,
            sent_before: self.sent_before,
        };
        let acks = Acks {
            now: self.path.now,
            packets: &[packet],
            bytes,
            credit: bytes,
            rtt: Some(rtt),
            rate: self.rate,
            new_round: self.new_round,
        };
        hear(&mut self.algorithm, &self.path, &acks)
    }

    /// Packets that were sent just now are lost.
    fn event(&self, lost: u64) -> CongestionEvent {
        CongestionEvent {
            now: self.path.now,
            sent: self.path.now,
            lost,
            ecn: false,
            persistent: false,
        }
    }

    fn loss(&self, bytes: u64) -> LostPacket {
        LostPacket {
            now: self.path.now,
            sent: self.path.now,
            bytes,
            sent_before: 0,
        }
    }
}

impl Feed<dyn SlowStart> {
    /// On a path of this RTT, whose window is the initial one.
    pub fn slow_start(slow_start: impl SlowStart + 'static, rtt_ms: u64) -> Self {
        Self::on(Box::new(slow_start), DATAGRAM, Span::from_millis(rtt_ms))
    }

    pub fn send(&mut self, bytes: u64) {
        self.path.sent += bytes;
        self.path.in_flight += bytes;
        self.algorithm.on_sent(&self.path, bytes);
    }

    /// An ACK of one packet, with an RTT sample, in the same round as the last one.
    pub fn ack(&mut self, at_ms: u64, bytes: u64, rtt_ms: u64) -> Step {
        self.new_round = false;
        self.acknowledge(at_ms, bytes, rtt_ms)
    }

    /// The first ACK of a round.
    pub fn ack_of_a_new_round(&mut self, at_ms: u64, bytes: u64, rtt_ms: u64) -> Step {
        self.path.round += 1;
        self.new_round = true;
        self.acknowledge(at_ms, bytes, rtt_ms)
    }

    fn acknowledge(&mut self, at_ms: u64, bytes: u64, rtt_ms: u64) -> Step {
        let rtt = Span::from_millis(rtt_ms);
        self.path.now = Time::ZERO + Span::from_millis(at_ms);
        self.path.rtt.latest = rtt;
        self.path.rtt.min = self.path.rtt.min.min(rtt);
        let step = self.tell(bytes, SlowStart::on_acks);
        match step {
            Step::Grow(bytes) => self.path.window += bytes,
            Step::Window(bytes) | Step::Retreat(bytes) => self.path.window = bytes,
            Step::Leave(exit) => self.path.window = exit.window,
        }
        step
    }

    /// Packets are lost, without a congestion event of their own.
    pub fn lose(&mut self, bytes: u64) {
        let lost = self.loss(bytes);
        self.algorithm.on_lost(&self.path, &lost);
    }

    /// Packets are lost, and that is a congestion event; what is to become of the window.
    pub fn congest(&mut self, lost: u64) -> Response {
        self.path.lost += lost;
        self.path.in_flight -= lost;
        let event = self.event(lost);
        self.algorithm.on_congestion(&self.path, &event)
    }

    pub fn log_event(&mut self) -> Option<LogEvent> {
        self.algorithm.take_event(&self.path)
    }
}

impl Feed<dyn Avoidance> {
    /// On a path with this window, which is filled, ten seconds after the beginning.
    pub fn avoidance(
        avoidance: impl Avoidance + 'static,
        datagram: u64,
        window: u64,
        rtt: Span,
    ) -> Self {
        let mut feed = Self::on(Box::new(avoidance), datagram, rtt);
        feed.path.now = Time::ZERO + Span::from_secs(10);
        feed.path.window = window;
        feed
    }

    /// Slow start has ended by itself.
    pub fn begin(&mut self) {
        self.algorithm.begin(&self.path);
    }

    pub fn ack(&mut self, bytes: u64) {
        self.path.window = self.tell(bytes, Avoidance::on_acks);
    }

    /// A packet is lost, and there is no congestion event yet.
    pub fn lose(&mut self) {
        let lost = self.loss(self.path.datagram);
        self.algorithm.on_lost(&self.path, &lost);
    }

    /// Whether the loss of a packet is no sign of congestion.
    pub fn forgives(&mut self) -> bool {
        let event = self.event(self.path.datagram);
        self.algorithm.forgives(&self.path, &event)
    }

    /// The loss of a packet is a congestion event.
    pub fn congest(&mut self) {
        let event = self.event(self.path.datagram);
        let reduction = self.algorithm.on_congestion(&self.path, &event);
        self.path.window = reduction.window;
        self.path.ssthresh = Some(reduction.ssthresh);
    }
}
