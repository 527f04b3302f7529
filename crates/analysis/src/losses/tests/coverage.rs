//! How often 95 % intervals hold what made the sequence, over 200 sequences.

use super::*;

const SEQUENCES: u64 = 200;

/// How often the interval of each name held.
#[derive(Default)]
struct Coverage(std::collections::BTreeMap<&'static str, u64>);

impl Coverage {
    fn note(&mut self, name: &'static str, estimate: &Estimate, truth: f64) {
        *self.0.entry(name).or_default() += u64::from(estimate.contains(truth));
    }

    fn check(&self) {
        println!("of {SEQUENCES}: {:?}", self.0);
        for (name, held) in &self.0 {
            let share = count(*held) / count(SEQUENCES);
            assert!((0.90..=0.99).contains(&share), "{name}: {share}");
        }
    }
}

#[test]
fn of_the_uniform_rate() {
    let mut coverage = Coverage::default();
    for seed in 0..SEQUENCES {
        let found = drawn(seed, &Parameters::uniform(0.01), 10_000);
        let rate = Estimate::proportion(found.losses(), 10_000).unwrap();
        coverage.note("rate", &rate, 0.01);
    }
    coverage.check();
}

/// Kuhn's Wi-Fi, 0.018 and 0.645.
#[test]
fn of_the_simplified_gilbert_model() {
    let (p, r) = (0.018, 0.645);
    let mut coverage = Coverage::default();
    for seed in 0..SEQUENCES {
        let runs = drawn(seed, &simplified(p, r), 10_000).runs();
        let seen = Transitions::of(&runs).unwrap();
        let fit = SimplifiedGilbert::fit(&seen).unwrap();
        coverage.note("P(b|g)", &fit.p_bad_given_good, p);
        coverage.note("P(g|g)", &fit.p_good_given_good, 1.0 - p);
        coverage.note("P(g|b)", &fit.p_good_given_bad, r);
        coverage.note("P(b|b)", &fit.p_bad_given_bad, 1.0 - r);
        coverage.note("burst", &fit.mean_burst.unwrap(), 1.0 / r);
        coverage.note("gap", &fit.mean_gap.unwrap(), 1.0 / p);
        let spread = fit.spread().unwrap();
        let losses = count(seen.good_bad + seen.bad_bad);
        let rate = Estimate::wilson(losses / spread, 10_000.0 / spread).unwrap();
        coverage.note("rate in bursts", &rate, p / (p + r));
    }
    coverage.check();
}

#[test]
fn of_the_gilbert_elliott_model() {
    let truth = Parameters {
        p_bad_given_good: 0.01,
        p_good_given_bad: 0.1,
        loss_in_good: 0.005,
        loss_in_bad: 0.5,
    };
    let mut coverage = Coverage::default();
    for seed in 0..SEQUENCES {
        let fit = GilbertElliott::fit(&drawn(seed, &truth, 10_000).runs()).unwrap();
        coverage.note("p", &fit.p_bad_given_good, truth.p_bad_given_good);
        coverage.note("r", &fit.p_good_given_bad, truth.p_good_given_bad);
        coverage.note("1-k", &fit.loss_in_good, truth.loss_in_good);
        coverage.note("1-h", &fit.loss_in_bad, truth.loss_in_bad);
    }
    coverage.check();
}

/// BIC names the model that drew the sequence.
#[test]
fn of_the_choice_of_a_model() {
    let hidden = Parameters {
        p_bad_given_good: 0.01,
        p_good_given_bad: 0.1,
        loss_in_good: 0.001,
        loss_in_bad: 0.5,
    };
    for (truth, model) in [
        (Parameters::uniform(0.02), Model::Uniform),
        (simplified(0.01, 0.3), Model::SimplifiedGilbert),
        (hidden, Model::GilbertElliott),
    ] {
        let right = (0..20).filter(|seed| {
            let found = ModelFits::of(&drawn(*seed, &truth, 20_000).runs());
            found.preferred() == Some(model)
        });
        assert!(right.count() >= 19, "{model:?}");
    }
}
