//! Losses by bit errors, by the length of packets.

use bentpipe_link::{Fate, Path};

use crate::decided::Decides;
use crate::{link, ns};

const PACKETS: u32 = 200_000;

fn losses(path: &mut Path, ip_bytes: u32) -> u32 {
    let fates = (0..PACKETS).map(|_| path.admit(ns(0), ip_bytes));
    fates.filter(|fate| *fate == Fate::Loss).map(|_| 1).sum()
}

#[test]
fn long_packets_are_lost_more_often() {
    let mut path = link("bit_errors = \"1e-5\"");
    for (ip_bytes, share) in [(40_u32, 0.003_194_9), (1500, 0.113_079_9)] {
        let (mean, count) = (f64::from(PACKETS) * share, losses(&mut path, ip_bytes));
        // Five standard deviations of a binomial distribution.
        let off = (f64::from(count) - mean).abs() / (mean * (1.0 - share)).sqrt();
        assert!(off < 5.0, "{count} of {ip_bytes} bytes, {mean} expected");
    }
}

#[test]
fn a_loss_model_beside_it_draws_what_it_draws_alone() {
    let fates = |text: &str| -> Vec<bool> {
        let mut path = link(text);
        let fates = (0..10_000).map(|_| path.admit(ns(0), 1500));
        fates.map(|fate| fate == Fate::Loss).collect()
    };
    let [model, bits, both] = [
        "loss = \"5 %\"",
        "bit_errors = \"3e-6\"",
        "loss = \"5 %\"\nbit_errors = \"3e-6\"",
    ]
    .map(fates);
    let either: Vec<bool> = model
        .iter()
        .zip(&bits)
        .map(|(one, other)| one | other)
        .collect();
    assert_eq!(both, either);
    assert!(model != both && bits != both);
}
