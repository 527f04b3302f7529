//! The gain of a connection from the saved path of an earlier one, and the cost if that was
//! wrong.

use crate::model::{DATAGRAM, History, Model};
use bentpipe_congestion::{Algorithms, Jump, Resume, SavedPath, Settings};
use bentpipe_units::{Rate, Span, Time};
use proptest::prelude::*;

const QUARTER: u64 = 4;

fn resumed(model: &Model, saved: SavedPath, jump: Jump) -> History {
    let settings = Settings {
        resume: Some(Resume { saved, jump }),
        ..Settings::default()
    };
    let algorithms = Algorithms::new("cubic", "standard").unwrap();
    model.run_with(algorithms.controller(settings, DATAGRAM, Time::ZERO))
}

/// The window and the round-trip time of the path, the window in percent of the true one.
fn saved(model: &Model, percent: u64) -> SavedPath {
    SavedPath {
        window: model.bdp_packets() * DATAGRAM * percent / 100,
        rtt: model.rtt,
    }
}

/// Queues of 25 packets, 0.25, 1 and 4 BDP.
fn paths() -> [Model; 4] {
    let bdp = Model::sat(0).bdp_packets();
    [25, bdp / QUARTER, bdp, 4 * bdp].map(Model::sat)
}

fn shares(jump: Jump, percent: u64) -> [u64; 4] {
    paths().map(|model| resumed(&model, saved(&model, percent), jump).share(&model))
}

#[test]
fn a_connection_saves_what_the_path_carries_in_a_round_trip() {
    for model in paths() {
        for ss in ["standard", "hystart++"] {
            let history = model.run("cubic", ss);
            let saved = history.observed.expect("it has filled the path");
            let percent = saved.window * 100 / (model.bdp_packets() * DATAGRAM);
            assert!((97..=104).contains(&percent), "{ss}: {percent} %");
            assert!(saved.rtt >= model.rtt && saved.rtt < model.rtt + Span::from_millis(2));
        }
    }
}

#[test]
fn what_one_connection_saved_lets_the_next_one_fill_the_path_at_once() {
    for model in paths() {
        let saved = model.run("cubic", "standard").observed.unwrap();
        let share = resumed(&model, saved, Jump::Whole).share(&model);
        assert!(share >= 97, "{share} %");
    }
}

#[test]
fn a_jump_to_half_as_the_rfc_has_it() {
    let cold = paths().map(|model| model.run("cubic", "standard").share(&model));
    let half = shares(Jump::Half, 100);
    // An initial window first, then half of the path for a round trip, and then slow start until
    // something is lost.
    for (half, cold) in half.into_iter().zip(cold) {
        assert!(half >= cold + 10, "{half} % after {cold} %");
    }
    assert!(half.into_iter().all(|share| share < 95), "{half:?}");
    let history = resumed(&Model::sat(25), saved(&Model::sat(25), 100), Jump::Half);
    assert_eq!(
        history.phases[..3],
        ["reconnaissance", "unvalidated", "validating"]
    );
}

/// Bentpipe's own sender, told of the path before its first flight.
fn told(model: &Model, saved: Option<SavedPath>) -> History {
    let jump = Jump::Flight;
    let settings = Settings {
        resume: saved.map(|saved| Resume { saved, jump }),
        ..Settings::default()
    };
    let algorithms = Algorithms::new("bentpipe", "flight").unwrap();
    model.run_with(algorithms.controller(settings, DATAGRAM, Time::ZERO))
}

/// Times of a megabyte, in percent of those without knowledge.
fn times_of_a_flight(model: &Model, percent: u64) -> u64 {
    let model = Model {
        bytes: 1_000_000,
        ..model.clone()
    };
    let time = |known| (told(&model, known).completion - Time::ZERO).as_nanos();
    time(Some(saved(&model, percent))) * 100 / time(None)
}

#[test]
fn a_first_flight_that_is_told_of_a_slow_or_fast_path_is_right_from_its_first_packet() {
    for (mbit, most) in [(2, 95), (10, 96), (20, 100), (100, 98), (250, 98)] {
        for queue in [25, 200] {
            let model = Model {
                rate: Rate::from_bps(mbit * 1_000_000),
                ..Model::sat(queue)
            };
            let time = times_of_a_flight(&model, 100);
            assert!(time <= most, "{mbit} Mbit/s, {queue} packets: {time} %");
            let lost = told(&model, Some(saved(&model, 100))).drops;
            assert!(lost <= 8, "{mbit} Mbit/s, {queue} packets: {lost} lost");
        }
    }
}

#[test]
fn a_first_flight_that_is_told_something_wrong_costs_at_most_as_much_again() {
    for model in paths() {
        for percent in [10, 50, 200, 1000] {
            let time = times_of_a_flight(&model, percent);
            assert!(time <= 180, "{percent} %: {time} %");
        }
        let other = SavedPath {
            rtt: Span::from_millis(1300),
            ..saved(&model, 100)
        };
        let cold = told(&model, None).completion;
        assert_eq!(told(&model, Some(other)).completion, cold);
        let absurd = SavedPath {
            window: u64::MAX,
            ..saved(&model, 100)
        };
        assert!(told(&model, Some(absurd)).share(&model) >= 80);
    }
}

/// `DualPI2` marks for seconds after the queue of such a flight is gone (RFC 9332, appendix A.1).
#[test]
fn marks_that_outlive_the_queue_of_a_flight_are_answered_once() {
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    for percent in [120, 150, 200, 300] {
        let model = Model::sat(1000);
        let marked = Model {
            marked: Some((at(1800)..at(4000), Span::ZERO)),
            ..model.clone()
        };
        let time = |model: &Model| {
            let told = told(model, Some(saved(model, percent)));
            (told.completion - Time::ZERO).as_nanos()
        };
        let longer = time(&marked) * 100 / time(&model);
        assert!(longer <= 130, "{percent} %: {longer} %");
    }
}

#[test]
fn a_first_flight_is_no_larger_than_the_saved_window_if_the_path_has_become_longer() {
    let model = Model::sat(250);
    let near = SavedPath {
        window: model.bdp_packets() * DATAGRAM,
        rtt: Span::from_millis(61),
    };
    let bdp = model.bdp_packets();
    let history = told(&model, Some(near));
    let early = history.samples.iter().take(2).map(|it| it.window).max();
    assert!(early.unwrap() <= 12 * bdp * DATAGRAM / 10, "{early:?}");
    assert!(history.drops <= bdp / 4, "{} dropped", history.drops);
}

#[test]
fn a_saved_window_of_no_use_does_not_slow_a_flight_down() {
    let model = Model::sat(250);
    let cold = told(&model, None).completion;
    for window in [0, 1, 1475, 50_000] {
        let small = SavedPath {
            window,
            ..saved(&model, 100)
        };
        assert_eq!(told(&model, Some(small)).completion, cold, "{window}");
    }
}

/// Transfers over a path that has become slower: the next one is not to believe it any more. Of
/// less that a long queue takes in, too few trains are complete to say so.
#[test]
fn knowledge_that_a_flight_disproves_is_not_confirmed() {
    for (queue, percent, sizes) in [
        (25, 200, [300_000, 1_000_000]),
        (25, 1000, [300_000, 1_000_000]),
        (250, 1000, [1_000_000, 3_000_000]),
        (4000, 1000, [3_000_000, 6_000_000]),
    ] {
        for bytes in sizes {
            let model = Model {
                bytes,
                ..Model::sat(queue)
            };
            let wrong = saved(&model, percent);
            let right = told(&model, Some(wrong)).confirms;
            assert!(!right, "{queue} packets, {percent} %, {bytes} bytes");
            let true_one = saved(&model, 100);
            let confirmed = told(&model, Some(true_one)).confirms;
            let had_less = bytes < true_one.window;
            assert_eq!(confirmed, had_less, "{queue} packets, {bytes} bytes");
        }
    }
}

#[test]
fn a_saved_window_that_is_twice_too_large() {
    let [short, quarter, one, four] = shares(Jump::Whole, 200);
    assert!(quarter >= 85 && one >= 85 && four >= 85);
    assert!(short >= 70, "{short} %");
    let history = resumed(&Model::sat(25), saved(&Model::sat(25), 200), Jump::Whole);
    assert!(history.resumption.retreated);
    assert!(history.phases.contains(&"safe_retreat"));
}

#[test]
fn a_path_that_has_become_ten_times_slower() {
    for queue in [25, 250] {
        let model = Model {
            rate: Rate::from_bps(2_000_000),
            ..Model::sat(queue)
        };
        let saved = saved(&Model::sat(25), 100);
        let cold = model.run("cubic", "standard").share(&model);
        for jump in [Jump::Half, Jump::Whole] {
            let history = resumed(&model, saved, jump);
            assert!(history.resumption.retreated, "{jump:?}");
            let share = history.share(&model);
            assert!(share + 10 >= cold, "{jump:?}: {share} % after {cold} %");
        }
    }
}

#[test]
fn another_round_trip_time_is_another_path() {
    let model = Model::sat(25);
    let cold = model.run("cubic", "standard");
    // At most half of the saved one, or more than ten times.
    for rtt in [Span::from_millis(1300), Span::from_millis(59)] {
        let other = SavedPath {
            rtt,
            ..saved(&model, 100)
        };
        for jump in [Jump::Half, Jump::Whole] {
            let history = resumed(&model, other, jump);
            assert_eq!(history.resumption.jump, None);
            assert_eq!(history.completion, cold.completion);
        }
    }
    // Paced by what the round trip is now, a jump does no harm within these bounds.
    for rtt in [Span::from_millis(1100), Span::from_millis(70)] {
        let other = SavedPath {
            rtt,
            ..saved(&model, 100)
        };
        assert!(resumed(&model, other, Jump::Whole).share(&model) >= 97);
    }
}

#[test]
fn absurd_numbers_do_no_harm() {
    let model = Model::sat(25);
    let cold = model.run("cubic", "standard");
    let sane = saved(&model, 100);
    for jump in [Jump::Half, Jump::Whole] {
        for path in [
            SavedPath { window: 0, ..sane },
            SavedPath { window: 1, ..sane },
            SavedPath {
                rtt: Span::ZERO,
                ..sane
            },
            SavedPath {
                rtt: Span::from_nanos(u64::MAX),
                ..sane
            },
        ] {
            let history = resumed(&model, path, jump);
            assert_eq!(history.resumption.jump, None, "{path:?}");
            assert_eq!(history.completion, cold.completion, "{path:?}");
        }
        // This one has the right round-trip time: all of the file leaves in a burst, and most of it
        // is lost. Twice the time is the price.
        let endless = SavedPath {
            window: u64::MAX,
            ..sane
        };
        let history = resumed(&model, endless, jump);
        assert!(history.resumption.retreated);
        assert!(history.resumption.jump.unwrap() <= 64 << 20);
        let share = history.share(&model);
        assert!(share * 2 >= cold.share(&model), "{jump:?}: {share} %");
    }
}

#[test]
fn a_small_window_does_not_end_slow_start() {
    let model = Model::sat(51);
    let cold = model.run("cubic", "standard");
    let of = |packets: u64| SavedPath {
        window: packets * DATAGRAM,
        rtt: model.rtt,
    };
    // Four initial windows of ten packets.
    let history = resumed(&model, of(40), Jump::Whole);
    assert_eq!(history.resumption.jump, Some(40 * DATAGRAM));
    let history = resumed(&model, of(39), Jump::Whole);
    assert_eq!(history.resumption.jump, None);
    assert_eq!(history.completion, cold.completion);
}

#[test]
fn what_little_arrives_of_a_burst_tells_the_rate_of_the_path() {
    let model = Model {
        bytes: 2 << 20,
        ..Model::sat(15)
    };
    let cold = model.run("cubic", "standard").share(&model);
    let endless = SavedPath {
        window: u64::MAX,
        rtt: model.rtt,
    };
    let history = resumed(&model, endless, Jump::Whole);
    assert!(history.drops > 1000);
    let share = history.share(&model);
    assert!(share * 3 >= cold * 2, "{share} % after {cold} %");
}

#[test]
fn a_jump_before_any_sample_saves_a_round_trip() {
    let model = Model {
        early: true,
        ..Model::sat(25)
    };
    let [whole, early] = [Jump::Whole, Jump::Early].map(|jump| {
        let history = resumed(&model, saved(&model, 100), jump);
        assert!(!history.resumption.retreated);
        history.completion - Time::ZERO
    });
    assert!(
        early + Span::from_millis(550) < whole,
        "{early:?} {whole:?}"
    );
}

/// And then it is to be as after any other jump that was too large.
#[test]
fn a_jump_before_any_sample_is_taken_back_over_another_path() {
    let model = Model {
        rtt: Span::from_millis(100),
        rate: Rate::from_bps(2_000_000),
        bytes: 2 << 20,
        early: true,
        ..Model::sat(25)
    };
    let cold = model.run("cubic", "standard").share(&model);
    let saved = saved(&Model::sat(25), 100);
    let history = resumed(&model, saved, Jump::Early);
    assert!(history.resumption.retreated);
    let share = history.share(&model);
    assert!(share + 10 >= cold, "{share} % after {cold} %");
}

#[test]
fn a_small_file_needs_no_jump() {
    let model = Model {
        bytes: 5_000,
        ..Model::sat(25)
    };
    let history = resumed(&model, saved(&model, 100), Jump::Whole);
    assert_eq!(history.resumption.jump, None);
    assert_eq!(history.drops, 0);
}

/// How many times as late everything arrives as without a jump, at worst, by (MiB, kind of jump):
/// what `docs/design/careful-resume.md` says of harm.
#[test]
#[ignore = "takes a minute, and prints"]
fn the_worst_that_a_saved_path_does() {
    let queues = (5..60).chain((60..400).step_by(17));
    let queues: Vec<u64> = queues.chain((400..4000).step_by(311)).collect();
    let small = (58_080..100_000).step_by(1452);
    let large = (200_000..20_000_000).step_by(400_000).chain([u64::MAX]);
    let windows: Vec<u64> = small.chain(large).collect();
    for mib in [1, 2] {
        let mut worst = std::collections::BTreeMap::new();
        for &queue in &queues {
            let model = Model {
                bytes: mib << 20,
                ..Model::sat(queue)
            };
            let seconds = |history: &History| (history.completion - Time::ZERO).as_secs_f64();
            let cold = seconds(&model.run("cubic", "standard"));
            if (8..=10).contains(&queue) {
                println!("{mib} MiB, a queue of {queue}: {cold:.1} s without a jump");
            }
            for &window in &windows {
                let rtt = model.rtt;
                for jump in [Jump::Half, Jump::Whole] {
                    let times = seconds(&resumed(&model, SavedPath { window, rtt }, jump)) / cold;
                    let edge = matches!(queue, 9 | 10);
                    let size = if window < 100_000 { "small" } else { "large" };
                    let kind = format!("{jump:?}, {size}{}", if edge { ", 9 or 10" } else { "" });
                    let most = worst.entry(kind).or_insert((0.0, 0, 0));
                    if times > most.0 {
                        *most = (times, queue, window);
                    }
                }
            }
        }
        for (kind, (times, queue, window)) in worst {
            println!("{mib} MiB, {kind}: {times:.2} (queue {queue}, window {window})");
            assert!(times < 3.0, "{kind}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever was saved, everything arrives, and at most twice as late as without it; with half
    /// of an endless jump two and a half times, since RFC 9959, section 3.5, has slow start end at
    /// half of what arrives of a jump, if nearly all is lost. With a whole one three times over
    /// queues of 9 and 10 packets: the first rounds of slow start just fit into 9, and all takes 6
    /// s; with 8 they do not, and it takes 14. A start with another window may need a packet more.
    #[test]
    fn no_saved_path_does_much_harm(
        window in prop_oneof![0..20_000_000_u64, 0..200_000_u64, Just(u64::MAX)],
        rtt_ms in prop_oneof![1..20_000_u64, 55..1_300_u64],
        queue in prop_oneof![5..4_000_u64, 5..60_u64],
        whole in any::<bool>(),
    ) {
        let model = Model { bytes: 2 << 20, ..Model::sat(queue) };
        let path = SavedPath { window, rtt: Span::from_millis(rtt_ms) };
        let jump = if whole { Jump::Whole } else { Jump::Half };
        let history = resumed(&model, path, jump);
        let warm = history.completion - Time::ZERO;
        let cold = model.run("cubic", "standard").completion - Time::ZERO;
        if history.resumption.jump.is_none() {
            prop_assert_eq!(warm, cold);
        }
        let halves = match queue {
            9 | 10 if whole => 6,
            _ if !whole && window == u64::MAX => 5,
            _ => 4,
        };
        prop_assert!(warm.as_nanos() < cold.as_nanos() * halves / 2, "{warm:?} after {cold:?}");
    }
}

#[test]
fn what_is_told_late_is_worth_as_much_as_what_is_told_at_first() {
    let model = Model::sat(250);
    let known = saved(&model, 100);
    for (ss, jump) in [("flight", Jump::Flight), ("standard", Jump::Whole)] {
        let saved = known;
        let resume = Resume { saved, jump };
        let cc = if ss == "flight" { "bentpipe" } else { "cubic" };
        let algorithms = Algorithms::new(cc, ss).unwrap();
        let new = |settings| algorithms.controller(settings, DATAGRAM, Time::ZERO);
        let first = model.run_with(new(Settings {
            resume: Some(resume),
            ..Settings::default()
        }));
        let mut controller = new(Settings::default());
        assert!(controller.may_resume());
        controller.resume(resume);
        assert!(!controller.may_resume(), "it knows of a path");
        assert_eq!(controller.resumption().saved, Some(known));
        assert_eq!(model.run_with(controller).completion, first.completion);
    }
}

#[test]
fn it_is_too_late_after_two_initial_windows() {
    let algorithms = Algorithms::new("bentpipe", "flight").unwrap();
    let mut controller = algorithms.controller(Settings::default(), DATAGRAM, Time::ZERO);
    let little = controller.path().little();
    for number in 0..=little / DATAGRAM {
        assert!(controller.may_resume());
        controller.on_sent(Time::ZERO, number, DATAGRAM);
    }
    assert!(!controller.may_resume());
    let resume = Resume {
        saved: saved(&Model::sat(25), 100),
        jump: Jump::Flight,
    };
    controller.resume(resume);
    assert_eq!(controller.resumption().saved, None);
}

/// A proxy keeps connections ready for hours, with a keep-alive every few seconds.
#[test]
fn keep_alives_do_not_make_it_too_late() {
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    let resume = Resume {
        saved: saved(&Model::sat(25), 100),
        jump: Jump::Flight,
    };
    let algorithms = Algorithms::new("bentpipe", "flight").unwrap();
    let mut controller = algorithms.controller(Settings::default(), DATAGRAM, Time::ZERO);
    let little = controller.path().little();
    for number in 0..2 * little / DATAGRAM {
        assert!(controller.may_resume(), "{number}");
        controller.on_sent(at(number * 5000), number, DATAGRAM);
        controller.on_ack(at(number * 5000 + 600), number, at(number * 5000));
        controller.on_acks_end(at(number * 5000 + 600), 0, true);
    }
    assert!(controller.path().sent > little && !controller.path().is_used());
    controller.resume(resume);
    assert_eq!(controller.resumption().saved, Some(resume.saved));
    assert!(!controller.may_resume(), "it knows of one");
    controller.forget();
    assert!(controller.may_resume(), "what it knew was too old");
}

/// A file that is over at once shows how slow the link has become, by the queue that it builds.
#[test]
fn a_small_file_over_a_long_queue_does_not_confirm_a_rate_that_is_no_more() {
    let known = saved(&Model::sat(4000), 100);
    for (mbit, right) in [(20, true), (5, false)] {
        let model = Model {
            rate: Rate::from_bps(mbit * 1_000_000),
            bytes: 900_000,
            ..Model::sat(4000)
        };
        let history = told(&model, Some(known));
        assert_eq!(history.confirms, right, "{mbit} Mbit/s");
    }
}

/// Adaptive coding and modulation: the link becomes slower, and the connection ends soon after.
#[test]
fn a_connection_saves_the_rate_that_the_link_has_come_to() {
    for (cc, ss) in [("cubic", "standard"), ("bentpipe", "flight")] {
        for to in [2, 5, 10] {
            let model = Model {
                change: Some((
                    Time::ZERO + Span::from_secs(20),
                    Rate::from_bps(to * 1_000_000),
                )),
                bytes: 1 << 40,
                until: Time::ZERO + Span::from_secs(23),
                ..Model::sat(1000)
            };
            let saved = model.run(cc, ss).observed.expect("it has filled the path");
            let percent = saved.rate() * 8 / to / 10_000;
            let what = format!("{cc}, to {to} Mbit/s: {percent} %");
            assert!((70..=125).contains(&percent), "{what}");
        }
    }
}

/// A proxy keeps connections ready for clients to come: a flight begins when there is something to
/// send, however long after the handshake.
#[test]
fn a_flight_leaves_late_after_keep_alives() {
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    let took = |writes: Vec<(Time, u64)>, saved: Option<SavedPath>| {
        let begins = writes.last().unwrap().0;
        let model = Model {
            writes,
            ..Model::sat(250)
        };
        (told(&model, saved).completion - begins).as_nanos()
    };
    for saved in [None, Some(saved(&Model::sat(250), 100))] {
        let fresh = took(vec![(at(620), 1000)], saved);
        // More in all than a flight may have sent that is new.
        for keep_alives in [6, 60] {
            let mut writes: Vec<_> = (0..keep_alives)
                .map(|it| (at(620 + 3000 * it), 1))
                .collect();
            writes.push((at(20_000 + 3000 * keep_alives), 1000));
            let waited = took(writes, saved);
            assert!(
                waited * 100 <= fresh * 105,
                "{keep_alives}: {waited} ns for {fresh}"
            );
        }
    }
}
