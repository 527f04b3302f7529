//! The log: one line for each thing that happened, on standard error, for people or, as JSON, for programs.
//!
//! Workers hand lines over and go on: one thread writes them. When whoever reads them is too slow, lines are dropped and counted, rather than
//! that connections wait.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::settings::{Format, Level, LogSettings};

/// Lines that wait for the writer.
const WAITING: usize = 8192;
/// How long the end of the program waits for them.
const FLUSH: Duration = Duration::from_secs(2);

/// Where lines go; clones write to the same.
#[derive(Debug, Clone)]
pub struct Log {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Mutex<LogSettings>,
    lines: SyncSender<Order>,
    lost: AtomicU64,
}

#[derive(Debug)]
enum Order {
    Line(String),
    /// Says when all before it is written.
    Flush(SyncSender<()>),
}

impl Log {
    /// Starts the writer.
    pub fn start(settings: LogSettings, out: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, orders) = sync_channel(WAITING);
        thread::Builder::new()
            .name("log".into())
            .spawn(move || write(&orders, out))?;
        let inner = Inner {
            settings: Mutex::new(settings),
            lines,
            lost: AtomicU64::new(0),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// From now on writes so.
    pub fn set(&self, settings: LogSettings) {
        *self.inner.settings.lock().expect("nobody panics with it") = settings;
    }

    /// Lines that nobody was there to take.
    pub fn lost(&self) -> u64 {
        self.inner.lost.load(Ordering::Relaxed)
    }

    /// Begins a line about `event`; it is written when it is dropped.
    pub fn line(&self, level: Level, event: &'static str) -> Line<'_> {
        let settings = *self.inner.settings.lock().expect("nobody panics with it");
        let fields = (level <= settings.level).then(Vec::new);
        Line {
            log: self,
            level,
            event,
            format: settings.format,
            fields,
        }
    }

    pub fn error(&self, event: &'static str) -> Line<'_> {
        self.line(Level::Error, event)
    }

    pub fn warning(&self, event: &'static str) -> Line<'_> {
        self.line(Level::Warning, event)
    }

    pub fn info(&self, event: &'static str) -> Line<'_> {
        self.line(Level::Info, event)
    }

    pub fn debug(&self, event: &'static str) -> Line<'_> {
        self.line(Level::Debug, event)
    }

    /// Waits, not for ever, until all lines so far are written.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.inner.lines.send(Order::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(FLUSH);
        }
    }

    fn put(&self, line: String) {
        if self.inner.lines.try_send(Order::Line(line)).is_err() {
            self.inner.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write(orders: &Receiver<Order>, mut out: impl Write) {
    for order in orders {
        match order {
            // Nobody can be told that it failed.
            Order::Line(line) => drop(out.write_all(line.as_bytes())),
            Order::Flush(done) => drop(done.send(())),
        }
    }
}

/// A line that is being put together.
#[derive(Debug)]
pub struct Line<'a> {
    log: &'a Log,
    level: Level,
    event: &'static str,
    format: Format,
    /// In the order in which they are given; `None`: nobody wants this line.
    fields: Option<Vec<(&'static str, Value)>>,
}

impl Line<'_> {
    /// Adds a field.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        if let Some(fields) = &mut self.fields {
            fields.push((name, value.into()));
        }
        self
    }

    /// Adds a field in its usual text form.
    pub fn say(self, name: &'static str, value: impl std::fmt::Display) -> Self {
        if self.fields.is_none() {
            return self;
        }
        self.with(name, value.to_string())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let Some(fields) = self.fields.take() else {
            return;
        };
        let time = timestamp(wall_clock());
        self.log.put(match self.format {
            Format::Text => text(&time, self.level, self.event, &fields),
            Format::Json => json(&time, self.level, self.event, &fields),
        });
    }
}

type Fields = [(&'static str, Value)];

fn text(time: &str, level: Level, event: &str, fields: &Fields) -> String {
    let mut line = format!("{time} {:<7} {event}", level.name());
    for (name, value) in fields {
        let _ = match value {
            Value::String(text) if !text.is_empty() && text.chars().all(is_plain) => {
                write!(line, " {name}={text}")
            }
            other => write!(line, " {name}={other}"),
        };
    }
    line.push('\n');
    line
}

/// What needs no quotes.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_graphic() && !matches!(letter, '"' | '=' | '\\')
}

fn json(time: &str, level: Level, event: &str, fields: &Fields) -> String {
    let first = [
        ("time", time.into()),
        ("level", level.name().into()),
        ("event", event.into()),
    ];
    let all = first.iter().chain(fields);
    let all: Vec<_> = all
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}\n", all.join(","))
}

#[expect(
    clippy::disallowed_methods,
    reason = "lines are for people, who want to know when it was"
)]
fn wall_clock() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default()
}

/// UTC, as in RFC 3339, in milliseconds.
fn timestamp(unix: Duration) -> String {
    let (seconds, millis) = (unix.as_secs(), unix.subsec_millis());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The date in the Gregorian calendar that is so many days after 1 January 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // WorkerCounters in eras of 400 years from 1 March of the year 0, so that leap days come last.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year + u64::from(month <= 2);
    (year, month, day - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Sends what is written to the test.
    struct Sink(std::sync::mpsc::Sender<String>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(String::from_utf8(bytes.to_vec()).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(settings: LogSettings, act: impl FnOnce(&Log)) -> Vec<String> {
        let (sender, lines) = channel();
        let log = Log::start(settings, Sink(sender)).unwrap();
        act(&log);
        drop(log); // then the thread that writes ends, and says no more
        lines.iter().collect()
    }

    #[test]
    fn lines_have_a_form_for_people_and_one_for_programs() {
        let act = |log: &Log| {
            let line = log
                .info("closed")
                .with("connection", 7)
                .with("why", "a \"b\"");
            drop(line.say("client", "127.0.0.1:1"));
            drop(log.debug("unwanted"));
        };
        let text = written(LogSettings::default(), act);
        let [line] = &text[..] else {
            panic!("{text:?}");
        };
        assert!(
            line.ends_with(" info    closed connection=7 why=\"a \\\"b\\\"\" client=127.0.0.1:1\n"),
            "{line}"
        );
        let settings = LogSettings {
            format: Format::Json,
            level: Level::Debug,
        };
        let lines = written(settings, act);
        let value: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(value["event"], "closed");
        assert_eq!(value["connection"], 7);
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn hostile_words_stay_on_their_line() {
        let lines = written(LogSettings::default(), |log| {
            drop(log.info("closed").with("reason", "x\ninfo opened\u{1b}[2J"));
        });
        assert_eq!(lines[0].matches('\n').count(), 1, "{lines:?}");
        assert!(!lines[0].contains('\u{1b}'), "{lines:?}");
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (1_798_761_599, "2026-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(timestamp(Duration::from_secs(seconds)), text);
        }
    }
}
