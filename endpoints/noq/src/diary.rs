//! What the congestion controllers of `bentpipe-congestion` say of themselves: in the connection's qlog, and in BYE.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_congestion::{Note, Value, Watch, Watcher};
use bentpipe_endpoint::{LogFile, LogFolder};
use bentpipe_units::Time;
use serde_json::{Map, Value as Json, json};

/// How slow start and Careful Resume ended on the path that was begun last.
pub type Statistics = Map<String, Json>;

/// The diaries of all paths of this endpoint.
#[derive(Debug, Clone)]
pub struct Diary {
    folder: Option<LogFolder>,
    statistics: Arc<Mutex<Statistics>>,
}

impl Diary {
    /// `folder` is where the connections' qlog goes.
    pub fn new(folder: Option<LogFolder>) -> Self {
        Self {
            folder,
            statistics: Arc::default(),
        }
    }

    /// A watcher for a path of the connection that noq is just making: it has asked for the qlog file already.
    pub fn of_a_new_path(&self) -> Watcher {
        self.lock().clear();
        Arc::new(Mutex::new(Page {
            log: self.folder.as_ref().and_then(LogFolder::latest),
            diary: self.clone(),
        }))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Statistics> {
        self.statistics
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Page {
    log: Option<LogFile>,
    diary: Diary,
}

impl Watch for Page {
    fn note(&mut self, note: &Note) {
        if note.name == "phase" {
            self.remember(note);
            self.follow_resume(note);
        }
        let Some(log) = &mut self.log else { return };
        let milliseconds = seconds(note) * 1e3;
        let record = json!({"time": milliseconds, "name": name(note), "data": data(note)});
        // As the records of noq's own: JSON text sequences (RFC 7464). A full disk shows when the file is completed.
        let _ = writeln!(log, "\u{1e}{record}");
    }
}

impl Page {
    /// Keeps how far Careful Resume got, and how it ended.
    fn follow_resume(&self, note: &Note) {
        let text = |name| match note.get(name) {
            Some(Value::Text(text)) => *text,
            _ => "",
        };
        let mut statistics = self.diary.lock();
        let (old, new) = (text("old"), text("new"));
        let ended = match (old, new) {
            (_, "unvalidated") => {
                let jump = note.get("congestion_window").map_or(Json::Null, to_json);
                statistics.insert("resume_jump_bytes".into(), jump);
                statistics.insert("resume_jump_s".into(), json!(seconds(note)));
                new
            }
            (_, "reconnaissance" | "validating" | "safe_retreat") => new,
            ("validating", _) => "validated",
            ("reconnaissance" | "unvalidated", _) => text("trigger"),
            _ => return,
        };
        statistics.insert("resume_ended_as".into(), json!(ended));
    }

    /// Keeps how slow start was left for the first time.
    fn remember(&self, note: &Note) {
        let mut statistics = self.diary.lock();
        let left = note.get("new") == Some(&Value::Text("congestion_avoidance"))
            || note.get("new") == Some(&Value::Text("drain"));
        if !left || statistics.contains_key("slow_start_left_s") {
            return;
        }
        statistics.insert("slow_start_left_s".into(), json!(seconds(note)));
        for (theirs, ours) in [
            ("trigger", "slow_start_left_by"),
            ("window_before", "slow_start_left_from_bytes"),
            ("congestion_window", "slow_start_left_to_bytes"),
        ] {
            statistics.insert(ours.into(), note.get(theirs).map_or(Json::Null, to_json));
        }
    }
}

/// A change of phase is an event of qlog's own (draft-ietf-quic-qlog-quic-events, section 7.4); the others are ours.
fn name(note: &Note) -> String {
    match note.name {
        "phase" => "quic:congestion_state_updated".to_owned(),
        other => format!("bentpipe:{other}"),
    }
}

fn data(note: &Note) -> Map<String, Json> {
    let pair = |(name, value): &(&'static str, Value)| ((*name).to_owned(), to_json(value));
    note.data.iter().map(pair).collect()
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
fn seconds(note: &Note) -> f64 {
    (note.now - Time::ZERO).as_secs_f64()
}
