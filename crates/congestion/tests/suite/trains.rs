//! Packet trains on all kinds of paths: what each hazard costs, and that none is a disaster.

use crate::feed::{self, Feed};
use crate::model::{DATAGRAM, History, Model};
use bentpipe_congestion::slow_start::Trains;
use bentpipe_units::{Rate, Span, Time};

const TRAINS: &str = "trains";
const CC: &str = "cubic";

fn run(model: &Model) -> History {
    model.run(CC, TRAINS)
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

/// The share of the limit in percent, and the packets lost to the queue.
fn outcome(model: &Model, ss: &str) -> (u64, u64) {
    let history = model.run(CC, ss);
    (history.share(model), history.drops)
}

#[test]
fn a_clean_path_is_filled_in_the_second_round_trip_whatever_its_queue() {
    let bdp = Model::sat(0).bdp_packets();
    for queue in [25, bdp / 10, bdp / 4, bdp, 4 * bdp] {
        let (share, drops) = outcome(&Model::sat(queue), TRAINS);
        assert!(
            share >= 90 && drops == 0,
            "queue {queue}: {share} %, {drops} lost"
        );
    }
}

#[test]
fn jitter_costs_little() {
    let bdp = Model::sat(0).bdp_packets();
    for queue in [25, bdp / 4, bdp] {
        for jitter in [2, 5, 20] {
            for seed in 1..=3 {
                let model = Model {
                    jitter: Span::from_millis(jitter),
                    seed,
                    ..Model::sat(queue)
                };
                let (share, drops) = outcome(&model, TRAINS);
                let (_, standard) = outcome(&model, "standard");
                let what = format!("queue {queue}, jitter {jitter} ms, seed {seed}");
                assert!(share >= 75, "{what}: {share} %");
                assert!(
                    drops <= standard,
                    "{what}: {drops} lost, standard {standard}"
                );
            }
        }
    }
}

#[test]
fn ack_intervals_up_to_ten_packets_are_measured_and_longer_ones_given_up() {
    for ack_every in 1..=10 {
        let model = Model {
            ack_every,
            ..Model::sat(25)
        };
        let (share, drops) = outcome(&model, TRAINS);
        assert!(
            share >= 90 && drops == 0,
            "every {ack_every}: {share} %, {drops} lost"
        );
    }
    for ack_every in [15, 20, 30, 60] {
        let model = Model {
            ack_every,
            ..Model::sat(25)
        };
        let (share, _) = outcome(&model, TRAINS);
        let (standard, _) = outcome(&model, "standard");
        assert!(
            share >= standard,
            "every {ack_every}: {share} % after {standard} %"
        );
    }
}

#[test]
fn small_files_are_not_slower_than_with_standard_slow_start() {
    for rate in [5, 10, 20, 50, 250] {
        for bytes in [1_000, 10_000, 20_000, 50_000, 100_000, 300_000] {
            let model = Model {
                rate: mbit(rate),
                bytes,
                ..Model::sat(25)
            };
            let ours = run(&model).completion;
            let standard = model.run(CC, "standard").completion;
            assert!(
                ours <= standard,
                "{bytes} bytes at {rate} Mbit/s: {ours:?} after {standard:?}"
            );
        }
    }
}

#[test]
fn a_queue_shorter_than_a_train_still_shows_the_rate() {
    for rate in [5, 10, 20, 50] {
        let model = Model {
            rate: mbit(rate),
            ..Model::sat(10)
        };
        let (share, drops) = outcome(&model, TRAINS);
        assert!(
            share >= 80 && drops <= 80,
            "{rate} Mbit/s: {share} %, {drops} lost"
        );
    }
}

#[test]
fn a_slow_path_loses_less_than_the_trains_and_ends_not_much_later() {
    for (kbit, queue) in [
        (500, 10),
        (500, 25),
        (500, 4000),
        (1000, 10),
        (1000, 25),
        (2000, 25),
    ] {
        let model = Model {
            rate: Rate::from_bps(kbit * 1000),
            bytes: kbit * 500,
            ..Model::sat(queue)
        };
        let (share, drops) = outcome(&model, TRAINS);
        let (standard, _) = outcome(&model, "standard");
        let what = format!("{kbit} kbit/s, queue {queue}");
        assert!(drops <= 105, "{what}: {drops} lost");
        assert!(
            share + 10 >= standard,
            "{what}: {share} % after {standard} %"
        );
    }
}

#[test]
fn below_100_ms_it_is_hystart_plus_plus() {
    for rtt in [1, 30, 95] {
        let model = Model {
            rate: mbit(10),
            rtt: Span::from_millis(rtt),
            ..Model::sat(25)
        };
        let (ours, standard) = (run(&model), model.run(CC, "hystart++"));
        assert_eq!(
            (ours.completion, ours.drops),
            (standard.completion, standard.drops)
        );
    }
    for rtt in [100, 200, 1500] {
        let model = Model {
            rate: mbit(10),
            rtt: Span::from_millis(rtt),
            ..Model::sat(25)
        };
        let (ours, standard) = (outcome(&model, TRAINS), outcome(&model, "standard"));
        assert!(
            ours.0 > standard.0 && ours.1 < standard.1,
            "{rtt} ms: {ours:?}, {standard:?}"
        );
    }
}

#[test]
fn high_rates_are_reached_at_once() {
    for (rate, rtt) in [(100, 300), (500, 100)] {
        let model = Model {
            rate: mbit(rate),
            rtt: Span::from_millis(rtt),
            bytes: rate * rtt * 600, // nearly five BDP
            ..Model::sat(1000)
        };
        let (share, drops) = outcome(&model, TRAINS);
        assert!(
            share >= 80 && drops == 0,
            "{rate} Mbit/s, {rtt} ms: {share} %, {drops} lost"
        );
    }
}

#[test]
fn random_loss_does_not_end_the_trial() {
    for loss_one_in in [1000, 100] {
        for seed in 1..=10 {
            let model = Model {
                loss_one_in,
                seed,
                ..Model::sat(1000)
            };
            let history = run(&model);
            let fourth = history.samples[3];
            assert_eq!(fourth.phase, "packet_trains_trial", "seed {seed}");
            assert!(fourth.window / DATAGRAM >= 1000, "seed {seed}: {fourth:?}");
        }
    }
}

/// The trains see 20 Mbit/s and the trial meets half of that, or a tenth.
#[test]
fn an_estimate_that_is_too_high_is_taken_back_within_a_round_trip() {
    let after_the_trains = Time::ZERO + Span::from_millis(1250);
    for (rate, queue) in [
        (10, 25),
        (10, 250),
        (10, 4000),
        (2, 25),
        (2, 250),
        (2, 4000),
    ] {
        let model = Model {
            change: Some((after_the_trains, mbit(rate))),
            bytes: rate * 500_000,
            ..Model::sat(queue)
        };
        let history = run(&model);
        // What leaves in one round trip at 0.95 of 20 Mbit/s, and a little until the losses are
        // judged.
        let what = format!("{rate} Mbit/s, queue {queue}");
        assert!(history.drops <= 1100, "{what}: {} lost", history.drops);
        let bdp = rate * 1_000_000 * 6 / 10 / 8 / 1480;
        let sixth = history.samples[5].window / DATAGRAM;
        assert!(
            (bdp / 2..=bdp * 3 / 2).contains(&sixth),
            "{what}: window {sixth}, BDP {bdp}"
        );
    }
}

#[test]
fn an_estimate_that_is_too_low_costs_an_eighth_until_avoidance_has_raised_it() {
    let after_the_trains = Time::ZERO + Span::from_millis(1250);
    let model = Model {
        rate: mbit(10),
        change: Some((after_the_trains, mbit(20))),
        ..Model::sat(250)
    };
    let ((ours, lost), (standard, _)) = (outcome(&model, TRAINS), outcome(&model, "standard"));
    assert!(
        ours * 8 >= standard * 7 && lost == 0,
        "{ours} % after {standard} %, {lost} lost"
    );
}

#[test]
fn with_cross_traffic_it_settles_at_what_is_left() {
    for (others, queue) in [
        (4, 25),
        (10, 25),
        (16, 25),
        (4, 1000),
        (10, 1000),
        (16, 1000),
    ] {
        let model = Model {
            cross_traffic: mbit(others),
            bytes: 5 << 20,
            ..Model::sat(queue)
        };
        let left = (20 - others) * 1000 / 20;
        let history = run(&model);
        let what = format!("{others} Mbit/s of others, queue {queue}");
        assert!(history.drops <= 1100, "{what}: {} lost", history.drops);
        let eighth = history.samples[7.min(history.samples.len() - 1)].window / DATAGRAM;
        assert!(
            (left / 3..=left * 2 + 25).contains(&eighth),
            "{what}: window {eighth}"
        );
    }
}

/// A return path that holds the first ACKs up makes two trains agree on a tenth of the rate; what
/// has arrived since shows that it is wrong.
#[test]
fn trains_are_not_believed_when_more_arrives_than_they_explain() {
    let mut feed = Feed::slow_start(Trains::default(), 600);
    let mut sent_before = Vec::new();
    for train in 0..5 {
        feed.path.now = Time::ZERO + Span::from_millis(60 * train);
        for _ in 0..20 {
            sent_before.push(feed.path.sent);
            feed.send(feed::DATAGRAM);
        }
    }
    let mut ack = |place: usize, at_ms| {
        feed.sent_before = sent_before[place];
        feed.ack(at_ms, feed::DATAGRAM, 600);
        feed.algorithm.phase()
    };
    let phases: Vec<_> = (0..42)
        .map(|place| ack(place, 600 + 5 * place as u64))
        .collect();
    assert_eq!(phases[41], "packet_trains_trial");
    let at_once: Vec<_> = (42..100).map(|place| ack(place, 810)).collect();
    assert_eq!(at_once[57], "slow_start");
    assert!(
        feed.path.window >= 100 * feed::DATAGRAM,
        "{}",
        feed.path.window
    );
}
