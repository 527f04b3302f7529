//! The slow starts on the model of a path: 20 Mbit/s, 600 ms, 100 MiB.

use std::sync::{Arc, Mutex};

use bentpipe_congestion::{Algorithms, EventLog, LogEvent, Settings, Value};
use bentpipe_units::{Span, Time};

use crate::model::{DATAGRAM, Model};

#[derive(Debug, Default)]
struct Heard(Vec<LogEvent>);

impl EventLog for Heard {
    fn log(&mut self, event: &LogEvent) {
        self.0.push(event.clone());
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

fn events(model: &Model, ss: &str) -> Vec<LogEvent> {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let settings = Settings {
        log: Some(heard.clone()),
        ..Settings::default()
    };
    let algorithms = Algorithms::new("cubic", ss).unwrap();
    model.run_with(algorithms.controller(settings, DATAGRAM, Time::ZERO));
    let mut heard = heard.lock().unwrap();
    std::mem::take(&mut heard.0)
}

fn text(event: &LogEvent, name: &str) -> &'static str {
    match event.get(name) {
        Some(Value::Text(text)) => text,
        other => panic!("{name} of {event:?} is {other:?}"),
    }
}

/// The cause of slow start's end.
fn end(events: &[LogEvent]) -> &'static str {
    let left =
        |event: &&LogEvent| event.name == "phase" && text(event, "new") == "congestion_avoidance";
    text(
        events.iter().find(left).expect("slow start ends"),
        "trigger",
    )
}

/// The largest normalised difference before slow start ended.
fn largest_norm(events: &[LogEvent]) -> f64 {
    let norms = events.iter().filter_map(|event| match event.get("norm") {
        Some(Value::Number(norm)) => Some(*norm),
        _ => None,
    });
    norms.fold(f64::MIN, f64::max)
}

#[test]
fn search_does_not_speak_before_loss_on_a_queue_of_one_bdp_and_does_on_four() {
    for (ss, one) in [("search", 0.35), ("search4", 0.26)] {
        let shallow = events(&sat(100), ss);
        assert_eq!(end(&shallow), "loss", "{ss}");
        let norm = largest_norm(&shallow);
        assert!(norm < one, "{ss}: {norm}");
    }
    let deep = events(&sat(400), "search");
    assert_eq!(end(&deep), "search");
    let deep = events(&sat(400), "search4");
    assert!(deep.iter().any(|event| event.name == "search_exit"));
}

#[test]
fn search_below_leaves_less_than_the_path_holds() {
    let model = sat(400);
    let events = events(&model, "search-below");
    assert_eq!(end(&events), "search");
    let left = |event: &&LogEvent| event.name == "search_exit";
    let exit = events.iter().find(left).expect("SEARCH leaves");
    let window = integer(exit, "congestion_window") / DATAGRAM;
    let bdp = model.bdp_packets();
    assert!(
        window < bdp && window > bdp / 2,
        "{window} packets, BDP {bdp}"
    );
}

#[test]
fn search_speaks_after_a_jump_and_while_the_rtt_judges_growth() {
    for ss in ["search-jump", "search-rtt"] {
        assert_eq!(end(&events(&sat(400), ss)), "search", "{ss}");
    }
}

fn css(events: &[LogEvent]) -> Option<&LogEvent> {
    let entered = |event: &&LogEvent| {
        event.name == "phase" && text(event, "new") == "conservative_slow_start"
    };
    events.iter().find(entered)
}

fn integer(event: &LogEvent, name: &str) -> u64 {
    match event.get(name) {
        Some(Value::Integer(number)) => *number,
        other => panic!("{name} of {event:?} is {other:?}"),
    }
}

#[test]
fn hystart_plus_plus_becomes_careful_beyond_the_bdp() {
    let model = sat(400);
    let events = events(&model, "hystart++");
    let window = integer(
        css(&events).expect("it becomes careful"),
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
        let events = events(&model, "hystart++");
        let window = css(&events).map(|event| integer(event, "congestion_window") / DATAGRAM);
        let bdp = model.bdp_packets();
        assert!(
            window.is_none_or(|window| window > bdp),
            "seed {seed}: {window:?}"
        );
    }
}
