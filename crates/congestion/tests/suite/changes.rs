//! Bentpipe's own sender where something happens: the path changes and loses packets as well, the
//! application writes little, the network marks. It comes back to the path's rate, and to a short
//! queue, since nobody else is there.

use bentpipe_units::{Rate, Span, Time};

use crate::model::{DATAGRAM, History, Model};

fn run(model: &Model) -> History {
    model.run("bentpipe", "flight")
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// An endless transfer, cut after so many seconds.
fn endless(model: Model, seconds: u64) -> Model {
    Model {
        bytes: 1 << 40,
        until: at(seconds * 1000),
        ..model
    }
}

/// Percent of the rate that arrived between these seconds.
fn share(history: &History, rate: Rate, from: u64, to: u64) -> u64 {
    let delivered = |second: u64| {
        let mut samples = history.samples.iter();
        let sample = samples.find(|it| it.at >= at(second * 1000));
        sample.or(history.samples.last()).unwrap().delivered
    };
    let bits = (delivered(to) - delivered(from)) * (DATAGRAM + 28) * 8;
    bits * 100 / (rate.bps() * (to - from))
}

/// Percent of the round trips from this second on in which it competes.
fn competes(history: &History, from: u64) -> usize {
    let late = || history.samples.iter().filter(|it| it.at >= at(from * 1000));
    late().filter(|it| it.phase == "competing").count() * 100 / late().count()
}

/// Percent of the BDP, from this second on: the largest window.
fn most(history: &History, bdp: u64, from: u64) -> u64 {
    let late = history.samples.iter().filter(|it| it.at >= at(from * 1000));
    late.map(|it| it.window).max().unwrap() / DATAGRAM * 100 / bdp
}

/// Headers, then chunks, then much: the trains that a first flight has are short ones.
#[test]
fn a_flight_of_small_writes_ends() {
    for rate in [2, 5, 20, 100] {
        for short in 1..=4 {
            for (jitter, seed) in [(0, 1), (2, 1), (2, 2), (5, 3)] {
                let mut writes: Vec<_> = (0..short).map(|i| (at(620 + 50 * i), 4)).collect();
                writes.push((at(630 + 50 * short), 1 << 30));
                let model = Model {
                    rate: mbit(rate),
                    jitter: Span::from_millis(jitter),
                    seed,
                    writes,
                    ..endless(Model::sat(250), 60)
                };
                let history = run(&model);
                let what = format!("{rate} Mbit/s, {short} short ones, jitter {jitter} ms");
                assert_ne!(history.phases.last(), Some(&"packet_trains"), "{what}");
                let lost = history.samples.last().unwrap().lost;
                assert!(lost * 100 <= history.sent * 8, "{what}: {lost} lost");
                let came_to = share(&history, model.rate, 30, 60);
                assert!(came_to >= 85, "{what}: {came_to} %");
            }
        }
    }
}

/// It sends half as much again as the link carries, little by little.
#[test]
fn an_application_that_writes_little_is_slowed_down_by_losses() {
    let writes = (0..300).map(|i| (at(620 + 200 * i), 10)).collect();
    let model = Model {
        rate: Rate::from_bps(400_000),
        writes,
        ..endless(Model::sat(25), 60)
    };
    let history = run(&model);
    let lost = history.samples.last().unwrap().lost;
    assert!(
        lost * 100 <= history.sent * 10,
        "{lost} of {}",
        history.sent
    );
}

#[test]
fn a_longer_path_with_losses_is_not_taken_for_others() {
    for (by, loss_one_in) in [(10, 1000), (20, 1000), (40, 2000), (40, 5000), (150, 1000)] {
        for seed in 1..=4 {
            let model = Model {
                longer: Some((at(20_000), Span::from_millis(by))),
                loss_one_in,
                seed,
                ..endless(Model::sat(1000), 120)
            };
            let came_to = share(&run(&model), model.rate, 40, 120);
            let what = format!("{by} ms, one of {loss_one_in}, seed {seed}");
            assert!(came_to >= 80, "{what}: {came_to} %");
        }
    }
}

#[test]
fn a_handover_in_low_orbit_is_not_taken_for_others() {
    for (by, gap) in [(20, 50), (60, 50), (60, 0), (20, 0)] {
        let model = Model {
            rtt: Span::from_millis(40),
            rate: mbit(50),
            longer: Some((at(20_000), Span::from_millis(by))),
            outage: (gap > 0).then(|| (at(19_950), at(19_950 + gap))),
            ..endless(Model::sat(250), 80)
        };
        let history = run(&model);
        let what = format!("{by} ms, outage of {gap} ms");
        let came_to = share(&history, model.rate, 25, 80);
        assert!(came_to >= 85, "{what}: {came_to} %");
        let competes = competes(&history, 40);
        assert!(competes <= 25, "{what}: competes for {competes} %");
    }
}

#[test]
fn alone_on_a_link_that_has_become_slower_it_finds_out_that_it_is_alone() {
    for (rate, queue) in [
        (10, 4000),
        (10, 1000),
        (10, 250),
        (5, 4000),
        (5, 250),
        (2, 250),
    ] {
        let model = Model {
            change: Some((at(10_000), mbit(rate))),
            ..endless(Model::sat(queue), 200)
        };
        let history = run(&model);
        let what = format!("{rate} Mbit/s, queue {queue}");
        let competes = competes(&history, 80);
        assert!(competes <= 25, "{what}: competes for {competes} %");
        let most = most(&history, model.bdp_packets() * rate / 20, 80);
        assert!(most <= 200, "{what}: {most} %");
        let came_to = share(&history, mbit(rate), 60, 200);
        assert!(came_to >= 90, "{what}: {came_to} %");
    }
}

#[test]
fn jitter_is_not_taken_for_others() {
    for jitter in [2, 5, 10, 20] {
        for seed in 1..=4 {
            let model = Model {
                jitter: Span::from_millis(jitter),
                seed,
                ..endless(Model::sat(1000), 120)
            };
            let history = run(&model);
            let what = format!("{jitter} ms, seed {seed}");
            let competes = competes(&history, 30);
            assert!(competes <= 25, "{what}: competes for {competes} %");
            let came_to = share(&history, model.rate, 30, 120);
            let least = if jitter < 20 { 90 } else { 80 };
            assert!(came_to >= least, "{what}: {came_to} %");
        }
    }
}

#[test]
fn an_outage_says_nothing_of_the_queue() {
    for jitter in 0..=3 {
        for seed in 1..=3 {
            let model = Model {
                rtt: Span::from_millis(60),
                rate: mbit(100),
                jitter: Span::from_millis(jitter),
                outage: Some((at(10_000), at(10_030))),
                seed,
                ..endless(Model::sat(500), 60)
            };
            let came_to = share(&run(&model), model.rate, 15, 60);
            assert!(
                came_to >= 90,
                "jitter {jitter} ms, seed {seed}: {came_to} %"
            );
        }
    }
}

/// RFC 3168, section 5: a mark is answered as a loss would be.
#[test]
fn marks_reduce_the_window_queue_or_not() {
    let model = Model {
        marked: Some((at(10_000)..Time::NEVER, Span::ZERO)),
        ..endless(Model::sat(1000), 60)
    };
    let history = run(&model);
    let percent = most(&history, model.bdp_packets(), 50);
    assert!(percent <= 10, "{percent} % after 40 s of marks");
}

/// Rates of a sender that had little to send are not what the path carries.
#[test]
fn what_was_sent_when_there_was_little_is_not_taken_for_the_rate() {
    let mut writes = vec![(at(620), 4000)];
    writes.extend((0..150).map(|i| (at(10_000 + 200 * i), 10)));
    writes.push((at(41_000), 12_000));
    let model = Model {
        writes,
        outage: Some((at(39_000), at(39_410))),
        ..endless(Model::sat(1000), 52)
    };
    let came_to = share(&run(&model), model.rate, 43, 48);
    assert!(came_to >= 60, "{came_to} %");
}

/// The trial goes on, since what was not sent in it has not been tried out.
#[test]
fn an_application_that_runs_dry_in_the_rate_trial_does_not_end_it() {
    for rate in [50, 250] {
        // The trains, which do not fill the path; little in the trial; then much.
        let writes = vec![(at(620), 400), (at(1300), 20), (at(4000), 1 << 30)];
        let model = Model {
            rate: mbit(rate),
            ..Model::sat(200)
        };
        let history = run(&endless(Model { writes, ..model }, 9));
        let share = share(&history, mbit(rate), 5, 8);
        assert!(share >= 90, "{rate} Mbit/s: {share} %");
    }
}

/// Its losses add up, though no round trip has enough packets to judge by.
#[test]
fn an_application_that_stays_dry_in_the_rate_trial_still_answers_losses() {
    let mut writes = vec![(at(620), 120)];
    writes.extend((0..400).map(|i| (at(1300 + 100 * i), 3)));
    let model = Model {
        rate: mbit(50),
        loss_one_in: 10,
        writes,
        ..endless(Model::sat(200), 45)
    };
    let history = run(&model);
    let trial = |it: &&str| it.starts_with("packet_trains");
    assert!(
        !history.phases.last().is_some_and(trial),
        "{:?}",
        history.phases
    );
}
