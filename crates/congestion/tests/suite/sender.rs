//! Bentpipe's own sender, `cc=bentpipe`: a first flight, then an avoidance that keeps the queue
//! short while it is alone. `docs/design/sender.md` has what it does beside others.

use bentpipe_congestion::{Algorithms, Settings};
use bentpipe_units::{Rate, Span, Time};

use crate::model::{DATAGRAM, History, Model};

fn run(model: &Model) -> History {
    model.run("bentpipe", "flight")
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

/// Packets of a quarter, one and four BDP, and 25.
fn queues(model: &Model) -> [u64; 4] {
    let bdp = model.bdp_packets();
    [25, bdp / 4, bdp, 4 * bdp]
}

#[test]
fn files_of_any_size_come_at_the_rate_of_the_path_and_nothing_is_dropped() {
    for rate in [20, 30] {
        for queue in queues(&Model::sat(0)) {
            for (bytes, share) in [
                (100_000, 95),
                (1_000_000, 95),
                (10 << 20, 92),
                (100_000_000, 92),
            ] {
                let model = Model {
                    rate: mbit(rate),
                    bytes,
                    ..Model::sat(queue)
                };
                let history = run(&model);
                let what = format!("{bytes} bytes at {rate} Mbit/s, queue {queue}");
                let came_to = history.share(&model);
                assert!(came_to >= share, "{what}: {came_to} %");
                assert_eq!(history.drops, 0, "{what}");
            }
        }
    }
}

#[test]
fn rates_from_1_to_250_mbit_are_used_with_every_queue() {
    for rate in [1, 2, 5, 10, 16, 50, 100, 250] {
        let ack_every = if rate > 50 { 10 } else { 2 };
        let model = Model {
            rate: mbit(rate),
            bytes: rate * 10_000_000,
            ack_every,
            ..Model::sat(25)
        };
        for queue in queues(&model) {
            let history = run(&Model {
                queue: queue.max(25),
                ..model.clone()
            });
            let share = history.share(&model);
            assert!(share >= 92, "{rate} Mbit/s, queue {queue}: {share} %");
        }
    }
}

#[test]
fn alone_it_keeps_the_queue_short() {
    let model = Model {
        bytes: 100_000_000,
        ..Model::sat(4000)
    };
    // A train has 20 packets.
    let longest = run(&model).longest_queue;
    assert!(longest <= 25, "{longest} packets waited");
}

#[test]
fn one_percent_of_random_loss_costs_little() {
    let model = Model {
        loss_one_in: 100,
        bytes: 100_000_000,
        ..Model::sat(250)
    };
    let share = run(&model).share(&model);
    assert!(share >= 90, "{share} %");
}

/// The window some round trips after a change at 10 s, in percent of what the path then holds.
fn settled(model: &Model, bdp: u64, rounds: usize) -> u64 {
    let history = run(model);
    let at = 10_000_000_000 / model.rtt.as_nanos();
    let sample = history.samples[usize::try_from(at).unwrap() + rounds];
    sample.window / DATAGRAM * 100 / bdp
}

#[test]
fn a_link_that_becomes_slower_is_answered_in_a_few_round_trips() {
    let at = Time::ZERO + Span::from_secs(10);
    for (rate, queue) in [(10, 1000), (10, 250), (5, 250)] {
        let model = Model {
            change: Some((at, mbit(rate))),
            bytes: 40_000_000,
            ..Model::sat(queue)
        };
        let percent = settled(&model, model.bdp_packets() * rate / 20, 8);
        let what = format!("{rate} Mbit/s, queue {queue}");
        assert!((60..=250).contains(&percent), "{what}: {percent} %");
    }
}

#[test]
fn a_link_that_becomes_faster_is_used() {
    let model = Model {
        change: Some((Time::ZERO + Span::from_secs(10), mbit(40))),
        bytes: 200_000_000,
        ..Model::sat(250)
    };
    let percent = settled(&model, 2 * model.bdp_packets(), 24);
    assert!(percent >= 90, "{percent} %");
}

#[test]
fn a_path_that_becomes_longer_is_not_taken_for_a_queue() {
    for by in [10, 40, 150] {
        let model = Model {
            longer: Some((Time::ZERO + Span::from_secs(10), Span::from_millis(by))),
            bytes: 100_000_000,
            ..Model::sat(250)
        };
        let share = run(&model).share(&model);
        assert!(share >= 85, "{by} ms: {share} %");
    }
}

#[test]
fn two_that_share_a_queue_use_the_link_and_neither_starves() {
    for queue in queues(&Model::sat(0)) {
        let model = Model {
            rate: mbit(10),
            bytes: 30_000_000,
            jitter: Span::from_nanos(200_000),
            ..Model::sat(queue)
        };
        let later = Time::ZERO + Span::from_secs(10);
        let [first, second] = model.run_two([("bentpipe", "flight"); 2], later);
        let what = format!("queue {queue}");
        let last = first.completion.max(second.completion) - Time::ZERO;
        let both = model.limit() * 2;
        assert!(last * 4 <= both * 5, "{what}: {last:?} for {both:?}");
        for taken in [first.completion - Time::ZERO, second.completion - later] {
            assert!(taken * 5 <= both * 6, "{what}: {taken:?}");
        }
    }
}

/// A rest of the handshake is the shortest of five trains, and a full queue leaves nothing of the
/// other four: nothing can be measured then, and no more trains leave.
#[test]
fn a_flight_of_which_nothing_arrives_ends() {
    let algorithms = Algorithms::new("bentpipe", "flight").unwrap();
    let mut controller = algorithms.controller(Settings::default(), DATAGRAM, Time::ZERO);
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    controller.on_sent(at(0), 0, 1200);
    controller.on_ack(at(600), 0, at(0));
    controller.on_acks_end(at(600), 0, true);
    let mut sent = vec![(at(600), 200)];
    for train in 0..4 {
        sent.extend([(at(650 + train * 100), DATAGRAM); 20]);
        sent.push((at(720 + train * 100), DATAGRAM));
    }
    for (number, &(time, bytes)) in (1..).zip(&sent) {
        controller.on_sent(time, number, bytes);
    }
    let last = sent.len() as u64;
    assert_eq!(controller.phase(), "packet_trains");
    controller.on_ack(at(1200), 1, at(600));
    controller.on_ack(at(1700), last, sent[sent.len() - 1].0);
    controller.on_acks_end(at(1700), 0, false);
    assert_ne!(controller.phase(), "packet_trains");
}

/// An application that has sent little for long has delivered more than a window in all.
#[test]
fn trains_of_which_nothing_arrives_leave_no_larger_window() {
    let algorithms = Algorithms::new("bentpipe", "trains").unwrap();
    let mut controller = algorithms.controller(Settings::default(), DATAGRAM, Time::ZERO);
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    for number in 0..300 {
        controller.on_sent(at(number * 700), number, DATAGRAM);
        controller.on_ack(at(number * 700 + 600), number, at(number * 700));
        controller.on_acks_end(at(number * 700 + 600), 0, true);
    }
    let train = |number: u64| at(300_000 + number / 20 * 100);
    for number in 0..=100 {
        controller.on_sent(train(number), 300 + number, DATAGRAM);
    }
    assert_eq!(controller.phase(), "packet_trains");
    let window = controller.window();
    for number in 0..100 {
        controller.on_lost(at(301_100), 300 + number, DATAGRAM);
    }
    controller.on_ack(at(301_100), 400, train(100));
    controller.on_acks_end(at(301_100), 0, false);
    assert_ne!(controller.phase(), "packet_trains");
    assert!(
        controller.window() <= window,
        "{} after {window}",
        controller.window()
    );
}
