//! Rapid Start and Jump Start against traces computed by hand.

use bentpipe_congestion::slow_start::{JumpStart, RapidStart};
use bentpipe_congestion::{
    Acked, Acks, Congestion, Exit, Lost, Pacing, Path, Response, Rtt, SlowStart, Step,
};
use bentpipe_units::{Span, Time};

const INITIAL_WINDOW: u64 = 12_000;
const RTT: Span = Span::from_millis(600);

struct Trace {
    path: Path,
    slow_start: Box<dyn SlowStart>,
}

impl Trace {
    fn new(slow_start: impl SlowStart + 'static) -> Self {
        let rtt = Rtt {
            first: RTT,
            latest: RTT,
            min: RTT,
            smoothed: RTT,
            variation: Span::ZERO,
            samples: 1,
        };
        let path = Path {
            now: Time::ZERO,
            datagram: 1200,
            rtt,
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

    fn send(&mut self, bytes: u64) {
        self.path.sent += bytes;
        self.path.in_flight += bytes;
    }

    /// An ACK of so many bytes, whose newest packet was sent after so many.
    fn ack(&mut self, bytes: u64, sent_before: u64, rtt_ms: u64) -> Step {
        self.path.delivered += bytes;
        self.path.in_flight -= bytes;
        let packet = Acked {
            sent: Time::ZERO,
            bytes,
            delivered_before: 0,
            sent_before,
        };
        let acks = Acks {
            now: Time::ZERO,
            packets: &[packet],
            bytes,
            credit: bytes,
            rtt: Some(Span::from_millis(rtt_ms)),
            rate: None,
            new_round: true,
        };
        self.slow_start.on_acks(&self.path, &acks)
    }

    fn congestion(&mut self, lost: u64) -> Response {
        self.path.lost += lost;
        self.path.in_flight -= lost;
        let event = Congestion {
            now: Time::ZERO,
            sent: Time::ZERO,
            lost,
            ecn: false,
            persistent: false,
        };
        self.slow_start.on_congestion(&self.path, &event)
    }
}

#[test]
fn rapid_start_triples_until_the_floor_has_risen_by_4_ms() {
    let mut trace = Trace::new(RapidStart::default());
    trace.send(1200);
    assert_eq!(trace.ack(1200, 0, 600), Step::Window(24_000));
    assert_eq!(trace.slow_start.pacing(&trace.path), Pacing::Gain(100));
    trace.send(24_000);
    assert_eq!(trace.slow_start.pacing(&trace.path), Pacing::Gain(200));
    // The first flight waits for the timer, which is no queue.
    assert_eq!(trace.ack(12_000, 1200, 625), Step::Grow(24_000));
    trace.send(60_000);
    assert_eq!(trace.ack(1200, 30_000, 604), Step::Grow(2400));
    // The floor is the least of this round and the one before.
    assert_eq!(trace.ack(1200, 31_200, 605), Step::Grow(2400));
    assert_eq!(trace.ack(1200, 32_400, 605), Step::Grow(1200));
}

/// The window entering recovery is what is in flight: 400,000 bytes arrive and 600,000 are lost, so 0.7 of the former must be left.
#[test]
fn rapid_start_leaves_beta_of_what_came_through() {
    let mut trace = Trace::new(RapidStart::default());
    trace.path.window = 1_000_000;
    trace.send(1_000_000);
    assert_eq!(trace.congestion(100_000), Response::Window(810_000));
    let lost = Lost {
        now: Time::ZERO,
        sent: Time::ZERO,
        bytes: 500_000,
        sent_before: 0,
    };
    trace.slow_start.on_lost(&trace.path, &lost);
    assert_eq!(trace.ack(399_000, 500_000, 700), Step::Window(280_200));
    let exit = Exit {
        window: 280_000,
        ssthresh: 280_000,
        reason: "recovered",
    };
    assert_eq!(trace.ack(1000, 1_000_000, 700), Step::Leave(exit));
}

#[test]
fn rapid_start_keeps_a_third_of_beta_whatever_is_lost() {
    let mut trace = Trace::new(RapidStart::default());
    trace.path.window = 300_000;
    trace.send(300_000);
    assert_eq!(trace.congestion(300_000), Response::Window(70_000));
}

#[test]
fn jump_start_goes_on_from_what_is_in_flight() {
    let mut trace = Trace::new(JumpStart::default());
    trace.send(1200);
    assert_eq!(trace.ack(1200, 0, 600), Step::Window(1_250_000));
    assert_eq!(trace.slow_start.pacing(&trace.path), Pacing::Gain(100));
    trace.send(500_000);
    assert_eq!(trace.ack(2400, 1200, 600), Step::Window(500_000));
    assert_eq!(trace.ack(400_000, 300_000, 600), Step::Grow(0));
    trace.send(1200);
    assert_eq!(trace.ack(1200, 501_200, 600), Step::Grow(1200));
}

#[test]
fn jump_start_is_left_with_seven_tenths_of_what_came_through() {
    let mut trace = Trace::new(JumpStart::default());
    trace.send(1200);
    trace.ack(1200, 0, 600);
    trace.send(1_000_000);
    trace.ack(100_000, 1200, 600);
    assert_eq!(trace.congestion(400_000), Response::Window(100_000));
    assert_eq!(trace.ack(490_000, 600_000, 600), Step::Window(590_000));
    trace.send(10_000);
    let exit = Exit {
        window: 420_000,
        ssthresh: 420_000,
        reason: "jump_lost",
    };
    assert_eq!(trace.ack(10_000, 1_001_200, 600), Step::Leave(exit));
}
