//! Bentpipe's own sender over paths drawn at random: it ends, takes no longer than three times
//! CUBIC's time, and where nobody shares the queue keeps it shorter than one and a half times the
//! path.

use bentpipe_units::{Rate, Span, Time};
use proptest::prelude::*;

use crate::model::{DATAGRAM, History, Model};

/// The rate goes from some 500 kbit/s to 500 Mbit/s, and each decade is as likely as another; so
/// does the round-trip time from 10 ms to 1.5 s.
fn path() -> impl Strategy<Value = Model> {
    let rate = (5.7..8.7f64).prop_map(|exponent| 10f64.powf(exponent));
    let rtt = (1.0..3.17f64).prop_map(|exponent| 10f64.powf(exponent));
    let queue = prop_oneof![5.0..50f64, (0.1..8f64).prop_map(|bdps| -bdps)];
    let losses = prop_oneof![Just(0), 20..1000u64];
    let step = prop_oneof![Just(1.0), 0.25..4f64];
    let noise = (losses, 0.0..0.03f64, 1..=10u64, step, any::<u64>());
    (rate, rtt, queue, 1..40u64, noise).prop_map(|(rate, rtt, queue, bdps, noise)| {
        let (loss_one_in, jitter, ack_every, step, seed) = noise;
        let bps = whole(rate);
        let mut model = Model {
            rate: Rate::from_bps(bps),
            rtt: Span::from_nanos(whole(rtt * 1e6)),
            jitter: Span::from_nanos(whole(rtt * 1e6 * jitter)),
            loss_one_in,
            ack_every,
            seed,
            ..Model::sat(0)
        };
        let bdp = model.bdp_packets().max(1);
        model.queue = if queue < 0.0 {
            whole(-queue * float(bdp)).max(5)
        } else {
            whole(queue)
        };
        // Enough for what happens after the start, and no more than a test has time for.
        model.bytes = (bdp * bdps).clamp(200, 40_000) * DATAGRAM;
        if (step - 1.0).abs() > 0.1 {
            let at = Time::ZERO + model.rtt * 10;
            model.change = Some((at, Rate::from_bps(whole(rate * step))));
        }
        model
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "they are positive"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

#[expect(clippy::cast_precision_loss, reason = "they are small")]
fn float(number: u64) -> f64 {
    number as f64
}

fn time(history: &History) -> u64 {
    (history.completion - Time::ZERO).as_nanos()
}

fn cases() -> ProptestConfig {
    let given = std::env::var_os("PROPTEST_CASES").is_some();
    let config = ProptestConfig::default();
    if given {
        config
    } else {
        ProptestConfig {
            cases: 64,
            ..config
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn it_ends_and_is_no_slower_than_a_third_of_cubic(model in path()) {
        let history = model.run("bentpipe", "flight");
        let cubic = model.run("cubic", "hystart++");
        let [taken, allowed] = [time(&history), time(&cubic) * 3].map(|it| it / 1_000_000);
        prop_assert!(taken <= allowed, "{taken} ms, CUBIC a third of {allowed} ms");
    }

    #[test]
    fn alone_it_has_at_most_two_and_a_half_times_the_path_in_flight(model in path()) {
        let model = Model { change: None, ..model };
        let history = model.run("bentpipe", "flight");
        let longest = Model { rtt: model.rtt + model.jitter, ..model };
        let most = 2 * longest.bdp_packets() * 5 / 4 + 128;
        let states = ["alone", "draining", "probing", "competing"];
        let samples = history.samples.iter().enumerate().skip(3);
        // The first ones drain what slow start has left, which HyStart++ makes long on short paths.
        let settled = samples.skip_while(|(_, it)| !states.contains(&it.phase)).skip(12);
        for (round, sample) in settled {
            let window = sample.window / DATAGRAM;
            let phase = sample.phase;
            prop_assert!(window <= most, "{window} packets for {most}, {phase} at {round}");
        }
    }
}
