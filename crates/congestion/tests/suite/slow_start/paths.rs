//! What the slow starts see on the model of a path: 20 Mbit/s, 600 ms, 100 MiB.

use std::sync::{Arc, Mutex};

use bentpipe_congestion::{Note, Recipe, Settings, Value, Watch};
use bentpipe_units::{Span, Time};

use crate::model::{DATAGRAM, Model};

#[derive(Debug, Default)]
struct Heard(Vec<Note>);

impl Watch for Heard {
    fn note(&mut self, note: &Note) {
        self.0.push(note.clone());
    }
}

/// A queue of so many hundredths of the BDP.
fn sat(queue_percent: u64) -> Model {
    let bdp = Model::sat(0).bdp_packets();
    Model {
        bytes: 100 << 20,
        ..Model::sat(bdp * queue_percent / 100)
    }
}

fn notes(model: &Model, ss: &str) -> Vec<Note> {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let settings = Settings {
        watcher: Some(heard.clone()),
        ..Settings::default()
    };
    let recipe = Recipe::new("cubic", ss).unwrap();
    model.run_with(recipe.controller(settings, DATAGRAM, Time::ZERO));
    let mut heard = heard.lock().unwrap();
    std::mem::take(&mut heard.0)
}

fn text(note: &Note, name: &str) -> &'static str {
    match note.get(name) {
        Some(Value::Text(text)) => text,
        other => panic!("{name} of {note:?} is {other:?}"),
    }
}

/// What ended slow start.
fn end(notes: &[Note]) -> &'static str {
    let left = |note: &&Note| note.name == "phase" && text(note, "new") == "congestion_avoidance";
    text(notes.iter().find(left).expect("slow start ends"), "trigger")
}

/// The largest normalised difference before slow start ended.
fn largest_norm(notes: &[Note]) -> f64 {
    let norms = notes.iter().filter_map(|note| match note.get("norm") {
        Some(Value::Number(norm)) => Some(*norm),
        _ => None,
    });
    norms.fold(f64::MIN, f64::max)
}

#[test]
fn search_does_not_speak_before_loss_on_a_queue_of_one_bdp_and_does_on_four() {
    for (ss, one) in [("search", 0.35), ("search4", 0.26)] {
        let shallow = notes(&sat(100), ss);
        assert_eq!(end(&shallow), "loss", "{ss}");
        let norm = largest_norm(&shallow);
        assert!(norm < one, "{ss}: {norm}");
    }
    let deep = notes(&sat(400), "search");
    assert_eq!(end(&deep), "search");
    let deep = notes(&sat(400), "search4");
    assert!(deep.iter().any(|note| note.name == "search_exit"));
}

fn css(notes: &[Note]) -> Option<&Note> {
    let entered =
        |note: &&Note| note.name == "phase" && text(note, "new") == "conservative_slow_start";
    notes.iter().find(entered)
}

fn integer(note: &Note, name: &str) -> u64 {
    match note.get(name) {
        Some(Value::Integer(number)) => *number,
        other => panic!("{name} of {note:?} is {other:?}"),
    }
}

#[test]
fn hystart_plus_plus_becomes_careful_beyond_the_bdp() {
    let model = sat(400);
    let notes = notes(&model, "hystart++");
    let window = integer(
        css(&notes).expect("it becomes careful"),
        "congestion_window",
    ) / DATAGRAM;
    let bdp = model.bdp_packets();
    assert!(
        window > bdp && window < 4 * bdp,
        "{window} packets, BDP {bdp}"
    );
}

#[test]
fn jitter_of_20_ms_does_not_make_it_careful_early() {
    for seed in 1..=5 {
        let model = Model {
            jitter: Span::from_millis(20),
            seed,
            bytes: 20 << 20,
            ..sat(100)
        };
        let notes = notes(&model, "hystart++");
        let window = css(&notes).map(|note| integer(note, "congestion_window") / DATAGRAM);
        let bdp = model.bdp_packets();
        assert!(
            window.is_none_or(|window| window > bdp),
            "seed {seed}: {window:?}"
        );
    }
}
