//! Values computed by hand and by other methods, and how often tests refuse.

use proptest::prelude::*;

use super::*;

/// Ten packets: good to good 4 times, good to bad 2, bad to good 2, bad to bad 1. P(b|g) is 2 of
/// 6, P(g|b) 2 of 3. `B_max` is 2; the one gap between two bursts has three packets.
#[test]
fn table_1_by_hand() {
    let found = DirectionLosses::of_sequence(&of_word("..xx...x.."));
    assert_eq!((found.packets, found.losses), (10, 3));
    let fit = found.simplified_gilbert.unwrap();
    for (estimate, value) in [
        (fit.p_good_given_good, 4.0 / 6.0),
        (fit.p_bad_given_good, 2.0 / 6.0),
        (fit.p_good_given_bad, 2.0 / 3.0),
        (fit.p_bad_given_bad, 1.0 / 3.0),
        (fit.mean_burst.unwrap(), 1.5),
        (fit.mean_gap.unwrap(), 3.0),
    ] {
        assert!(near(estimate.value, value), "{estimate:?}");
    }
    let (bursts, gaps) = (found.bursts.unwrap(), found.gaps.unwrap());
    assert_eq!(
        (bursts.count, bursts.max, gaps.count, gaps.max),
        (2, 2, 1, 3)
    );
    // The first state from the stationary distribution: 2/3 of 1.
    let steps = [
        2.0 / 3.0,
        2.0 / 3.0,
        1.0 / 3.0,
        1.0 / 3.0,
        2.0 / 3.0,
        2.0 / 3.0,
        2.0 / 3.0,
        1.0 / 3.0,
    ];
    let steps = steps.iter().product::<f64>() * (2.0 / 3.0) * (2.0 / 3.0);
    assert!(near(found.models[1].log_likelihood, steps.ln()));
}

/// Six packets, two of them lost side by side. Of the 15 ways, 5 have one burst, 10 have two, which
/// is likelier.
#[test]
fn the_test_of_independence_by_hand() {
    let tests = MarkovTests::of(&of_word("..xx..").runs());
    assert!(near(tests.order_0_against_1.unwrap().p_value, 5.0 / 15.0));
    assert_eq!(tests.independent, Answer::NotSure);
}

/// Over all hidden states that 12 packets may have met.
#[test]
fn the_likelihood_is_the_sum_over_all_states() {
    let model = Parameters {
        p_bad_given_good: 0.2,
        p_good_given_bad: 0.3,
        loss_in_good: 0.1,
        loss_in_bad: 0.7,
    };
    let found = of_word("..xxx.x....x");
    let mut sum = 0.0;
    for states in 0..1_u32 << 12 {
        let bad = |at: usize| states >> at & 1 == 1;
        let mut product = 1.0;
        for (at, lost) in found.lost.iter().enumerate() {
            let to_bad = match at.checked_sub(1).map(bad) {
                None => model.bad_share(),
                Some(true) => 1.0 - model.p_good_given_bad,
                Some(false) => model.p_bad_given_good,
            };
            product *= if bad(at) { to_bad } else { 1.0 - to_bad };
            let loss = if bad(at) {
                model.loss_in_bad
            } else {
                model.loss_in_good
            };
            product *= if *lost { loss } else { 1.0 - loss };
        }
        sum += product;
    }
    assert!(near(Likelihood::of(&found.runs()).log(&model), sum.ln()));
}

/// A step of Baum and Welch from the maximum leads nowhere: the first state's weight aside, which
/// they leave free.
#[test]
fn baum_and_welch_stand_still_at_the_maximum() {
    let truth = Parameters {
        p_bad_given_good: 0.01,
        p_good_given_bad: 0.1,
        loss_in_good: 0.005,
        loss_in_bad: 0.5,
    };
    let found = drawn(3, &truth, 20_000);
    let fit = GilbertElliott::fit(&found.runs()).unwrap();
    let next = baum_welch(&found.lost, &fit.parameters());
    for (one, other) in [
        (fit.p_bad_given_good, next.p_bad_given_good),
        (fit.p_good_given_bad, next.p_good_given_bad),
        (fit.loss_in_good, next.loss_in_good),
        (fit.loss_in_bad, next.loss_in_bad),
    ] {
        assert!((one.value / other - 1.0).abs() < 2e-3, "{one:?} {other}");
    }
}

fn baum_welch(lost: &[bool], model: &Parameters) -> Parameters {
    let (p, r) = (model.p_bad_given_good, model.p_good_given_bad);
    let step = [[1.0 - p, p], [r, 1.0 - r]];
    let losses = [model.loss_in_good, model.loss_in_bad];
    let met = |lost: bool, state: usize| {
        if lost {
            losses[state]
        } else {
            1.0 - losses[state]
        }
    };
    let mut forward = vec![[0.0; 2]; lost.len()];
    let mut before = [1.0 - model.bad_share(), model.bad_share()];
    for (now, lost) in forward.iter_mut().zip(lost) {
        for (state, value) in now.iter_mut().enumerate() {
            let came = before[0] * step[0][state] + before[1] * step[1][state];
            *value = came * met(*lost, state);
        }
        let whole = now[0] + now[1];
        *now = now.map(|it| it / whole);
        before = *now;
    }
    let (mut moves, mut share, mut lost_in) = ([[0.0; 2]; 2], [0.0; 2], [0.0; 2]);
    let mut behind = [1.0; 2];
    for at in (0..lost.len()).rev() {
        let mut here = [0, 1].map(|state| forward[at][state] * behind[state]);
        let whole = here[0] + here[1];
        here = here.map(|it| it / whole);
        for state in 0..2 {
            share[state] += here[state];
            lost_in[state] += if lost[at] { here[state] } else { 0.0 };
        }
        if at > 0 {
            let joint = [0, 1].map(|from| {
                [0, 1].map(|to| {
                    forward[at - 1][from] * step[from][to] * met(lost[at], to) * behind[to]
                })
            });
            let whole: f64 = joint.iter().flatten().sum();
            for from in 0..2 {
                for to in 0..2 {
                    moves[from][to] += joint[from][to] / whole;
                }
            }
        }
        let next = [0, 1].map(|from| {
            (0..2)
                .map(|to| step[from][to] * met(lost[at], to) * behind[to])
                .sum::<f64>()
        });
        behind = next.map(|it| it / (next[0] + next[1]));
    }
    Parameters {
        p_bad_given_good: moves[0][1] / (moves[0][0] + moves[0][1]),
        p_good_given_bad: moves[1][0] / (moves[1][0] + moves[1][1]),
        loss_in_good: lost_in[0] / share[0],
        loss_in_bad: lost_in[1] / share[1],
    }
}

/// How many of 400 sequences a test refuses at 5 %.
fn refused(model: &Parameters, test: impl Fn(&MarkovTests) -> Option<Test>) -> usize {
    let seeds = 1000..1400;
    let made = seeds.filter_map(|seed| test(&MarkovTests::of(&drawn(seed, model, 10_000).runs())));
    made.filter(|it| it.p_value < 0.05).count()
}

/// Counts are whole, so exact tests refuse at most as often as they may: 5 % of 400 are 20, plus
/// two and a half deviations.
#[test]
fn tests_refuse_what_holds_in_about_5_percent() {
    let uniform = Parameters::uniform(0.05);
    let markov = simplified(0.05, 0.4);
    let sizes = [
        refused(&uniform, |it| it.order_0_against_1),
        refused(&uniform, |it| it.order_1_against_2),
        refused(&markov, |it| it.order_1_against_2),
        refused(&markov, |it| it.geometric_bursts),
        refused(&markov, |it| it.geometric_gaps),
    ];
    println!("refused of 400: {sizes:?}");
    assert!(sizes.iter().all(|it| (8..=31).contains(it)), "{sizes:?}");
    // With few losses as well.
    let few = refused(&Parameters::uniform(0.003), |it| it.order_0_against_1);
    assert!(few <= 31, "{few}");
}

/// A loss is likelier if the packet before the last was lost.
#[test]
fn a_chain_of_order_2_is_refused() {
    let refused = (0..100).filter(|seed| {
        let mut draws = Draws::new(*seed);
        let mut lost = vec![false, false];
        for at in 2..10_000 {
            let chance = match (lost[at - 2], lost[at - 1]) {
                (false, false) => 0.02,
                (true, false) => 0.2,
                (false, true) => 0.3,
                (true, true) => 0.6,
            };
            lost.push(draws.number() <= chance);
        }
        MarkovTests::of(&sequence(lost).runs()).markov == Answer::No
    });
    assert!(refused.count() >= 95);
}

/// A handover every 15 s with 20 % of loss for 100 ms after it, and 0.1 % at all times; packets are
/// sent 2 ms apart for two minutes.
#[test]
fn the_period_of_handovers_is_found() {
    for seed in 0..3 {
        let mut draws = Draws::new(seed);
        let sent: Vec<i64> = (0..60_000).map(|it| it * 2_000_000).collect();
        let lost = sent.iter().map(|sent| {
            let during = (sent + 10_000_000_000) % 15_000_000_000 < 100_000_000;
            draws.number() <= if during { 0.2 } else { 0.001 }
        });
        let lost = lost.collect();
        let found = DirectionLosses::of_sequence(&LossSequence {
            sent,
            lost,
            ..LossSequence::default()
        });
        let periodicity = found.periodicity.unwrap();
        let period = periodicity.period_s.unwrap();
        println!("{periodicity:?}");
        assert!(
            (period - 15.0).abs() <= periodicity.period_within_s.unwrap(),
            "{period}"
        );
    }
}

/// Losses alike, and in bursts, of packets that are sent in trains of 200 once in 600 ms.
#[test]
fn no_period_is_found_where_there_is_none() {
    let hidden = Parameters {
        p_bad_given_good: 0.001,
        p_good_given_bad: 0.02,
        loss_in_good: 0.001,
        loss_in_bad: 0.3,
    };
    for model in [Parameters::uniform(0.01), hidden] {
        let found = (0..20).filter(|seed| {
            let mut sequence = drawn(*seed, &model, 20_000);
            for (at, sent) in (0..).zip(&mut sequence.sent) {
                *sent = at / 200 * 600_000_000 + at % 200 * 500_000;
            }
            let periodicity = DirectionLosses::of_sequence(&sequence).periodicity;
            periodicity.unwrap().period_s.is_some()
        });
        // 5 % of 20 are 1, and more than 5 come once in three thousand times.
        let found = found.count();
        println!("{found} of 20");
        assert!(found <= 5, "{model:?}: {found}");
    }
}

proptest! {
    /// Whatever was lost, nothing is NaN, and every interval holds its value.
    #[test]
    fn any_sequence_is_told(lost in prop::collection::vec(prop::bool::weighted(0.3), 0..60)) {
        let mut sequence = sequence(lost);
        sequence.sent.fill(0); // all at once: no search for a period, which takes long
        let found = DirectionLosses::of_sequence(&sequence);
        let simple = found.simplified_gilbert;
        let hidden = found.gilbert_elliott;
        let estimates = [found.rate, found.rate_in_bursts]
            .into_iter()
            .chain([simple.map(|it| it.p_bad_given_good), simple.map(|it| it.p_good_given_bad)])
            .chain([simple.and_then(|it| it.mean_burst), simple.and_then(|it| it.mean_gap)])
            .chain([hidden.map(|it| it.p_bad_given_good), hidden.map(|it| it.loss_in_bad)]);
        for estimate in estimates.flatten() {
            prop_assert!(estimate.value.is_finite() && estimate.low.is_finite());
            prop_assert!(estimate.low <= estimate.value + 1e-9);
            prop_assert!(estimate.high.is_none_or(|high| estimate.value <= high + 1e-9));
        }
        for model in &found.models {
            prop_assert!(model.log_likelihood.is_finite());
        }
        if let Some(tests) = found.tests {
            let made = [tests.order_0_against_1, tests.order_1_against_2, tests.geometric_bursts];
            for test in made.into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&test.p_value) && test.statistic.is_finite());
            }
        }
    }
}
