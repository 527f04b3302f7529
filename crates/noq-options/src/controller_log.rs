//! The reports of the congestion controllers of `bentpipe-congestion`: in the connection's
//! qlog, and in BYE.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_congestion::{EventLog, LogEvent, SharedEventLog, Value};
use bentpipe_endpoint::contract::Statistics;
use bentpipe_endpoint::{LogFile, LogFolder};
use bentpipe_units::Time;
use serde_json::{Map, Value as Json, json};

/// The log of the congestion controllers of an endpoint, one per path.
#[derive(Debug, Clone)]
pub struct ControllerLog {
    folder: Option<LogFolder>,
    /// How slow start and Careful Resume ended on the path that was begun last, and when the first
    /// loss was noticed.
    statistics: Arc<Mutex<Map<String, Json>>>,
}

impl ControllerLog {
    /// `folder` is where the connections' qlog goes.
    pub fn new(folder: Option<LogFolder>) -> Self {
        Self {
            folder,
            statistics: Arc::default(),
        }
    }

    /// A log for a path of the connection that noq is just making: it has asked for the qlog file
    /// already.
    pub fn for_new_path(&self) -> SharedEventLog {
        self.lock().clear();
        Arc::new(Mutex::new(PathLog {
            file: self.folder.as_ref().and_then(LogFolder::latest),
            all: self.clone(),
        }))
    }

    /// The columns of a record.
    pub fn statistics(&self) -> Statistics {
        let mut said = Statistics::default();
        for (name, value) in self.lock().iter() {
            said.say(name, value.clone());
        }
        said
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Map<String, Json>> {
        self.statistics
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct PathLog {
    /// The qlog of the connection.
    file: Option<LogFile>,
    all: ControllerLog,
}

impl EventLog for PathLog {
    fn log(&mut self, event: &LogEvent) {
        self.remember(event);
        match event.name {
            "phase" => self.follow_resume(event),
            "packet_trains" => self.remember_saved_rate(event),
            _ => {}
        }
        let Some(file) = &mut self.file else { return };
        let milliseconds = seconds(event) * 1e3;
        let record = json!({"time": milliseconds, "name": name(event), "data": data(event)});
        // As the records of noq's own: JSON text sequences (RFC 7464). A full disk shows when the
        // file is completed.
        let _ = writeln!(file, "\u{1e}{record}");
    }
}

impl PathLog {
    /// Keeps the rate of a first flight that an earlier connection has told.
    fn remember_saved_rate(&self, event: &LogEvent) {
        if let Some(rate) = event.get("saved_bytes_per_second") {
            let mut statistics = self.all.lock();
            statistics.insert("resume_flight_bytes_per_second".into(), to_json(rate));
            statistics.insert("resume_ended_as".into(), json!("flight"));
        }
    }

    /// Keeps how far Careful Resume got, and how it ended.
    fn follow_resume(&self, event: &LogEvent) {
        let text = |name| match event.get(name) {
            Some(Value::Text(text)) => *text,
            _ => "",
        };
        let mut statistics = self.all.lock();
        let (old, new) = (text("old"), text("new"));
        let ended = match (old, new) {
            (_, "unvalidated") => {
                let jump = event.get("congestion_window").map_or(Json::Null, to_json);
                statistics.insert("resume_jump_bytes".into(), jump);
                statistics.insert("resume_jump_s".into(), json!(seconds(event)));
                new
            }
            (_, "reconnaissance" | "validating" | "safe_retreat") => new,
            ("validating", _) => "validated",
            ("reconnaissance" | "unvalidated", _) => text("trigger"),
            _ => return,
        };
        statistics.insert("resume_ended_as".into(), json!(ended));
    }

    /// Keeps what a record should say: the first of each kind of note counts.
    fn remember(&self, event: &LogEvent) {
        let (subject, values): (_, &[_]) = match event.name {
            "first_loss" => ("first_loss", &[("rtt_s", "latest_rtt")]),
            "search_exit" => ("search_exit", &SEARCH_EXIT),
            "phase" => match event.get("new") {
                Some(Value::Text("conservative_slow_start")) => ("css_entered", &WINDOW),
                Some(Value::Text("congestion_avoidance" | "alone" | "drain")) => {
                    ("slow_start_left", &LEFT)
                }
                _ => return,
            },
            _ => return,
        };
        let mut statistics = self.all.lock();
        let time = format!("{subject}_s");
        if statistics.contains_key(&time) {
            return;
        }
        statistics.insert(time, json!(seconds(event)));
        for (name, from) in values {
            let value = match event.get(from) {
                Some(Value::Number(milliseconds)) => json!(milliseconds / 1e3),
                Some(value) => to_json(value),
                None => Json::Null,
            };
            statistics.insert(format!("{subject}_{name}"), value);
        }
    }
}

const WINDOW: [(&str, &str); 1] = [("at_bytes", "congestion_window")];
const LEFT: [(&str, &str); 5] = [
    ("by", "trigger"),
    ("from_bytes", "window_before"),
    ("to_bytes", "congestion_window"),
    ("rtt_s", "latest_rtt"),
    ("min_rtt_s", "min_rtt"),
];
/// When SEARCH found the choke point, also if it only looked on.
const SEARCH_EXIT: [(&str, &str); 3] = [
    ("from_bytes", "window_before"),
    ("to_bytes", "congestion_window"),
    ("rtt_s", "latest_rtt"),
];

/// A change of phase is an event of qlog's own (draft-ietf-quic-qlog-quic-events, section 7.4); the
/// others are ours.
fn name(event: &LogEvent) -> String {
    match event.name {
        "phase" => "quic:congestion_state_updated".to_owned(),
        other => format!("bentpipe:{other}"),
    }
}

fn data(event: &LogEvent) -> Map<String, Json> {
    let pair = |(name, value): &(&'static str, Value)| ((*name).to_owned(), to_json(value));
    event.data.iter().map(pair).collect()
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Integer(number) => json!(number),
        Value::Number(number) => json!(number),
        Value::List(numbers) => json!(numbers),
    }
}

/// Since the start of the trial.
fn seconds(event: &LogEvent) -> f64 {
    (event.now - Time::ZERO).as_secs_f64()
}
