//! Congestion events that come late, that meant nothing, or that are taken back.

use bentpipe_congestion::slow_start::{CarefulResume, Trains};
use bentpipe_congestion::{
    Algorithms, CongestionEvent, Controller, Jump, Pacing, Resume, SavedPath, Settings,
    SlowStart as _,
};
use bentpipe_units::{Span, Time};

const DATAGRAM: u64 = 1200;

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn controller(cc: &str, ss: &str) -> Controller {
    let algorithms = Algorithms::new(cc, ss).unwrap();
    algorithms.controller(Settings::default(), DATAGRAM, at(0))
}

fn send(controller: &mut Controller, ms: u64, numbers: std::ops::Range<u64>) {
    for number in numbers {
        controller.on_sent(at(ms), number, DATAGRAM);
    }
}

/// An ACK at `ms` of packets that were sent at `sent`.
fn ack(controller: &mut Controller, ms: u64, sent: u64, numbers: std::ops::Range<u64>) {
    let in_flight = controller.path().in_flight;
    let acked = (numbers.end - numbers.start) * DATAGRAM;
    for number in numbers {
        controller.on_ack(at(ms), number, at(sent));
    }
    controller.on_acks_end(at(ms), in_flight - acked, false);
}

/// Packets that were sent at `sent` are found lost at `ms`.
fn lose(
    controller: &mut Controller,
    ms: u64,
    sent: u64,
    numbers: std::ops::Range<u64>,
    persistent: bool,
) {
    let lost = (numbers.end - numbers.start) * DATAGRAM;
    for number in numbers {
        controller.on_lost(at(ms), number, DATAGRAM);
    }
    controller.on_congestion(&CongestionEvent {
        now: at(ms),
        sent: at(sent),
        lost,
        ecn: false,
        persistent,
    });
}

#[test]
fn an_event_that_was_ignored_is_not_taken_back() {
    let mut controller = controller("cubic", "jump-start");
    send(&mut controller, 0, 0..2);
    ack(&mut controller, 600, 0, 0..1);
    // Not of the jump.
    lose(&mut controller, 600, 0, 1..2, false);
    send(&mut controller, 600, 2..52);
    ack(&mut controller, 1200, 600, 2..12);
    let landed = controller.window();
    assert_eq!(landed, 50 * DATAGRAM);
    controller.on_spurious_congestion();
    assert_eq!(
        (controller.window(), controller.phase()),
        (landed, "jump_start_landed")
    );
}

#[test]
fn losses_that_were_forgiven_do_not_take_back_an_earlier_event() {
    let mut controller = controller("tolerant", "standard");
    send(&mut controller, 0, 0..10);
    lose(&mut controller, 600, 0, 0..8, false);
    let reduced = controller.window();
    assert_eq!(reduced, 7 * 12_000 / 10);
    send(&mut controller, 700, 10..15);
    ack(&mut controller, 1300, 700, 11..15);
    let window = controller.window();
    lose(&mut controller, 1300, 700, 10..11, false);
    assert_eq!(controller.window(), window, "forgiven");
    controller.on_spurious_congestion();
    assert_eq!(controller.window(), window);
}

#[test]
fn persistent_congestion_counts_in_a_recovery_period_too() {
    let mut controller = controller("newreno", "standard");
    send(&mut controller, 0, 0..10);
    ack(&mut controller, 600, 0, 9..10);
    lose(&mut controller, 600, 0, 0..1, false);
    assert!(controller.window() > 2 * DATAGRAM);
    lose(&mut controller, 9000, 0, 1..9, true);
    assert_eq!(controller.window(), 2 * DATAGRAM);
}

#[test]
fn the_end_of_a_flight_is_counted_as_lost_after_a_probe() {
    let mut controller = controller("cubic", "standard");
    send(&mut controller, 0, 0..10);
    ack(&mut controller, 600, 0, 0..8);
    // The probe timeout: RTT and four times its variation; and a round trip until the ACK of the
    // probe.
    send(&mut controller, 1825, 10..11);
    ack(&mut controller, 2425, 1825, 10..11);
    lose(&mut controller, 2425, 0, 8..10, false);
    assert_eq!(controller.path().lost, 2 * DATAGRAM);
}

#[test]
fn a_resumed_connection_leaves_slow_start_at_the_pace_that_this_asks_for() {
    let saved = SavedPath {
        window: 1_500_000,
        rtt: Span::from_millis(600),
    };
    for jump in [Jump::Half, Jump::Whole] {
        let resume = CarefulResume::new(Box::<Trains>::default(), Resume { saved, jump });
        assert_eq!(resume.pacing_afterwards(), Some(Pacing::Gain(102)));
    }
}
