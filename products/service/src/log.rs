//! The log: one line for each thing that happened, on standard error, for people or, as JSON, for
//! programs.
//!
//! Workers hand lines over and go on: one thread writes them. When whoever reads them is too slow,
//! lines are dropped and counted, rather than that connections wait.
//!
//! `tracing` with a form of lines that is our own: in those that tracing-subscriber brings, what is
//! `time`, `level: "warning"` and `event` here is called otherwise, and what a hostile peer has
//! said could break out of its line.

use std::fmt::{self, Debug};
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Dispatch, Level, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, Layer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::{self, Handle};

use crate::settings::{Format, Level as LevelSetting, LogSettings};

/// Lines that wait for the writer.
const WAITING: usize = 8192;

/// How often it is looked, at the end, whether all lines are written, and how many times at most:
/// for 2 s.
const LOOK: Duration = Duration::from_millis(5);
const LOOKS: u32 = 400;

/// The log of the program. Dropped, it waits until all lines so far are written, but not for longer
/// than 2 s: who reads them may be stuck.
#[derive(Debug)]
pub struct Log {
    /// Whose events are written: those of a library, of which there may be one for each packet, are
    /// not.
    target: &'static str,
    filter: Handle<Targets, Registry>,
    is_json: Arc<AtomicBool>,
    lost: ErrorCounter,
    lines: Arc<LineCounts>,
    writer: Option<WorkerGuard>,
}

/// The counts of lines that were made, and of those that were written.
#[derive(Debug, Default)]
struct LineCounts {
    made: AtomicUsize,
    written: AtomicUsize,
}

/// A writer that counts the lines that got through it.
struct CountingWriter<W> {
    out: W,
    lines: Arc<LineCounts>,
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    /// Writes one line.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.out.write_all(bytes);
        self.lines.written.fetch_add(1, Ordering::Relaxed);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Log {
    #[expect(
        clippy::disallowed_methods,
        reason = "the program ends, and waits for whoever reads its lines"
    )]
    fn drop(&mut self) {
        let is_done = || {
            let settled = self.lines.written.load(Ordering::Relaxed) + self.lost.dropped_lines();
            settled >= self.lines.made.load(Ordering::Relaxed)
        };
        for _ in 0..LOOKS {
            if is_done() {
                return;
            }
            thread::sleep(LOOK);
        }
        // The guard would wait once more, and print that it did so in vain, to where nobody may be.
        mem::forget(self.writer.take());
    }
}

impl Log {
    /// Begins to write what the crate called `target` says from now on to standard error.
    #[must_use]
    pub fn install(target: &'static str, settings: LogSettings) -> Self {
        let (log, dispatch) = Self::open(target, settings, std::io::stderr());
        tracing::dispatcher::set_global_default(dispatch).expect("there is one log");
        log
    }

    /// The log, and the dispatcher that passes events to it.
    fn open(
        target: &'static str,
        settings: LogSettings,
        out: impl Write + Send + 'static,
    ) -> (Self, Dispatch) {
        let writer = NonBlockingBuilder::default()
            .buffered_lines_limit(WAITING)
            .thread_name("log");
        let lines = Arc::new(LineCounts::default());
        let (writer, guard) = writer.finish(CountingWriter {
            out,
            lines: lines.clone(),
        });
        let lost = writer.error_counter();
        let (filter, handle) = reload::Layer::new(filter(target, settings.level));
        let is_json = Arc::new(AtomicBool::new(settings.format == Format::Json));
        let format = LineFormat {
            is_json: is_json.clone(),
            lines: lines.clone(),
        };
        let layer = Layer::default().event_format(format).with_writer(writer);
        let dispatch = Dispatch::new(Registry::default().with(filter).with(layer));
        let log = Self {
            target,
            filter: handle,
            is_json,
            lost,
            lines,
            writer: Some(guard),
        };
        (log, dispatch)
    }

    /// From now on writes so.
    pub fn set(&self, settings: LogSettings) {
        let is_json = settings.format == Format::Json;
        self.is_json.store(is_json, Ordering::Relaxed);
        let filter = filter(self.target, settings.level);
        self.filter.reload(filter).expect("whom it is for is there");
    }

    /// The counter of lines that nobody was there to take.
    #[must_use]
    pub fn lost(&self) -> ErrorCounter {
        self.lost.clone()
    }
}

fn filter(target: &'static str, level: LevelSetting) -> Targets {
    let level = match level {
        LevelSetting::Error => LevelFilter::ERROR,
        LevelSetting::Warning => LevelFilter::WARN,
        LevelSetting::Info => LevelFilter::INFO,
        LevelSetting::Debug => LevelFilter::DEBUG,
    };
    let own = env!("CARGO_CRATE_NAME");
    Targets::new()
        .with_target(target, level)
        .with_target(own, level)
}

/// The form of a line.
#[derive(Debug)]
struct LineFormat {
    is_json: Arc<AtomicBool>,
    lines: Arc<LineCounts>,
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        out: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> fmt::Result {
        self.lines.made.fetch_add(1, Ordering::Relaxed);
        let mut said = Fields::default();
        event.record(&mut said);
        // One that nothing is known of is there, too.
        let names = event.metadata().fields().iter().map(|field| field.name());
        let all = names.filter(|name| *name != MESSAGE).map(|name| {
            let found = said.values.iter().find(|(other, _)| *other == name);
            (name, found.map_or(&Value::Null, |(_, value)| value))
        });
        let level = name(*event.metadata().level());
        if self.is_json.load(Ordering::Relaxed) {
            json(out, level, &said.event, all)
        } else {
            text(out, level, &said.event, all)
        }
    }
}

/// The field that has the words of an event, which are its name here.
const MESSAGE: &str = "message";

/// The fields of an event.
#[derive(Default)]
struct Fields {
    event: String,
    values: Vec<(&'static str, Value)>,
}

impl Fields {
    fn push(&mut self, field: &Field, value: impl Into<Value>) {
        self.values.push((field.name(), value.into()));
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        if field.name() == MESSAGE {
            self.event = text;
            return;
        }
        // tracing has no lists: one of texts comes as Rust writes it, which is as JSON does.
        match serde_json::from_str::<Vec<String>>(&text) {
            Ok(list) => self.push(field, list),
            Err(_) => self.push(field, text),
        }
    }
}

fn text<'a>(
    mut out: Writer<'_>,
    level: &str,
    event: &str,
    fields: impl Iterator<Item = (&'a str, &'a Value)>,
) -> fmt::Result {
    SystemTime.format_time(&mut out)?;
    write!(out, " {level:<7} {event}")?;
    for (name, value) in fields {
        match value {
            Value::String(text) if !text.is_empty() && text.chars().all(is_plain) => {
                write!(out, " {name}={text}")?;
            }
            other => write!(out, " {name}={}", OneLine(other))?,
        }
    }
    writeln!(out)
}

/// Whether a character needs no quotes.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_graphic() && !matches!(letter, '"' | '=' | '\\')
}

/// A value as JSON in which nothing ends a line or moves a terminal's cursor: JSON itself lets DEL,
/// the controls above it, and the line ends of Unicode stand as they are.
struct OneLine<'a>(&'a Value);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.to_string().chars() {
            if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') {
                write!(out, "\\u{:04x}", u32::from(letter))?;
            } else {
                write!(out, "{letter}")?;
            }
        }
        Ok(())
    }
}

fn json<'a>(
    mut out: Writer<'_>,
    level: &str,
    event: &str,
    fields: impl Iterator<Item = (&'a str, &'a Value)>,
) -> fmt::Result {
    out.write_str("{\"time\":\"")?;
    SystemTime.format_time(&mut out)?;
    let event = Value::from(event);
    write!(out, "\",\"level\":\"{level}\",\"event\":{event}")?;
    for (name, value) in fields {
        write!(out, ",\"{name}\":{}", OneLine(value))?;
    }
    out.write_str("}\n")
}

fn name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use tracing::{debug, info, warn};

    use super::*;

    const TARGET: &str = "bentpipe_service";

    /// A writer that sends what is written to the test.
    struct Sink(Sender<String>);

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
        let (log, dispatch) = Log::open(TARGET, settings, Sink(sender));
        tracing::dispatcher::with_default(&dispatch, || act(&log));
        drop(log); // then the thread that writes ends, and says no more
        drop(dispatch);
        lines.iter().collect()
    }

    #[test]
    fn lines_have_a_form_for_people_and_one_for_programs() {
        let act = |_: &Log| {
            let nobody: Option<&str> = None;
            let listen = vec!["[::1]:443".to_owned()];
            let (why, client) = ("a \"b\"", "127.0.0.1:1");
            info!(connection = 7, why, %client, nobody, ?listen, "closed");
            debug!("unwanted");
        };
        let text = written(LogSettings::default(), act);
        let [line] = &text[..] else {
            panic!("{text:?}");
        };
        let said = " info    closed connection=7 why=\"a \\\"b\\\"\" client=127.0.0.1:1 \
                    nobody=null listen=[\"[::1]:443\"]\n";
        assert!(line.ends_with(said), "{line}");
        let settings = LogSettings {
            format: Format::Json,
            level: LevelSetting::Debug,
        };
        let lines = written(settings, act);
        let value: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(value["event"], "closed");
        assert_eq!(value["level"], "info");
        assert_eq!(value["connection"], 7);
        assert_eq!(value["listen"][0], "[::1]:443");
        assert!(value["nobody"].is_null());
        let time = value["time"].as_str().unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn hostile_words_stay_on_their_line() {
        let lines = written(LogSettings::default(), |_| {
            info!(
                reason = "x\ninfo opened\u{1b}[2J\u{85}\u{9b}\u{2028}",
                "closed"
            );
        });
        let line = lines[0].strip_suffix('\n').unwrap();
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(
            line.ends_with(r#"reason="x\ninfo opened\u001b[2J\u0085\u009b\u2028""#),
            "{line}"
        );
    }

    /// A writer whose reader is stuck until the test ends.
    struct Stuck(std::sync::mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_is_stuck_keeps_nobody_from_ending() {
        let (end, stuck) = channel();
        let (log, dispatch) = Log::open(TARGET, LogSettings::default(), Stuck(stuck));
        tracing::dispatcher::with_default(&dispatch, || {
            for _ in 0..2 * WAITING {
                info!("one more");
            }
        });
        let lost = log.lost();
        assert!(lost.dropped_lines() >= WAITING - 2);
        drop(log); // comes back, and prints nothing
        drop(end);
    }

    #[test]
    fn settings_change_while_it_runs_and_libraries_are_not_heard() {
        let lines = written(LogSettings::default(), |log| {
            debug!("not yet");
            warn!(target: "noq_proto::connection", "of the library");
            log.set(LogSettings {
                format: Format::Json,
                level: LevelSetting::Debug,
            });
            debug!("now");
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("\"level\":\"debug\",\"event\":\"now\""));
    }
}
