//! The purpose of `tolerant`, and what it must not do: over the model of a path, from a window that
//! fits.

use crate::model::{DATAGRAM, History, Model};
use bentpipe_congestion::{Algorithms, Settings};
use bentpipe_units::Time;

/// Sends 50 MiB from an initial window of 900 packets: what slow start does is not the question.
fn send(cc: &str, model: &Model) -> History {
    let settings = Settings {
        initial_window: Some(900 * DATAGRAM),
        ..Settings::default()
    };
    let algorithms = Algorithms::new(cc, "standard").unwrap();
    model.run_with(algorithms.controller(settings, DATAGRAM, Time::ZERO))
}

fn satloss(seed: u64) -> Model {
    Model {
        loss_one_in: 100,
        bytes: 50 << 20,
        seed,
        ..Model::sat(25)
    }
}

#[test]
fn fills_a_path_that_loses_one_packet_in_a_hundred() {
    for seed in 1..=5 {
        let model = satloss(seed);
        let tolerant = send("tolerant", &model);
        assert!(tolerant.share(&model) >= 70, "{}", tolerant.share(&model));
    }
    assert!(send("cubic", &satloss(1)).share(&satloss(1)) < 10);
}

#[test]
fn loses_no_more_to_a_queue_than_cubic_by_a_fifth() {
    for queue in [25, 250, 1013] {
        let model = Model {
            bytes: 50 << 20,
            ..Model::sat(queue)
        };
        let (tolerant, cubic) = (send("tolerant", &model), send("cubic", &model));
        let most = cubic.drops + cubic.drops / 5;
        assert!(
            tolerant.drops <= most,
            "{queue}: {} and {}",
            tolerant.drops,
            cubic.drops
        );
        assert!(
            tolerant.share(&model) + 5 >= cubic.share(&model),
            "{queue}: {} and {}",
            tolerant.share(&model),
            cubic.share(&model)
        );
    }
}
