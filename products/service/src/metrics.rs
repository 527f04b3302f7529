//! The metrics page for Prometheus, and the health check.
//!
//! The page is written here, in its text format 0.0.4. The crate `prometheus-client` writes
//! `OpenMetrics`, in which a counter `connections_total` is of a family `connections`: the gauge of
//! that name could not stand beside it, and operators' rules and the records of trials have both.
//! It would have taken the place of the eight lines that write a number.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tracing_appender::non_blocking::ErrorCounter;

use crate::http::{self, Answer};
use crate::settings::MetricsSettings;
use crate::{Failure, SettingsError};

/// A worker answers within a turn; one that does not in this time hangs.
pub const WORKER_TIMEOUT: Duration = Duration::from_secs(2);

/// The kind of a number: what becomes of it in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It is what it is at the moment.
    Gauge,
}

/// The description of a number that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name, without the program's.
    pub name: &'static str,
    /// Its behaviour over time.
    pub kind: MetricKind,
    /// Its description, in a line.
    pub help: &'static str,
}

/// The description of a counter.
#[must_use]
pub const fn counter(name: &'static str, help: &'static str) -> Metric {
    let kind = MetricKind::Counter;
    Metric { name, kind, help }
}

/// The description of a gauge.
#[must_use]
pub const fn gauge(name: &'static str, help: &'static str) -> Metric {
    let kind = MetricKind::Gauge;
    Metric { name, kind, help }
}

/// Makes a struct `Statistics` of numbers that are counted; the comment on each is what it is, in a
/// line.
#[macro_export]
macro_rules! statistics {
    ($(#[doc = $help:literal] $name:ident: $kind:ident,)*) => {
        /// Counters since the start, and gauges.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Statistics {
            $(#[doc = $help] pub $name: u64,)*
        }

        impl Statistics {
            /// All of them, in a fixed order; with what they are.
            pub fn entries(&self) -> impl Iterator<Item = ($crate::metrics::Metric, u64)> + use<> {
                let metric = |name, kind, help: &'static str| $crate::metrics::Metric {
                    name,
                    kind,
                    help: help.trim_start(),
                };
                [$((
                    metric(stringify!($name), $crate::metrics::MetricKind::$kind, $help),
                    self.$name,
                ),)*].into_iter()
            }
        }

        impl ::std::ops::AddAssign<&Self> for Statistics {
            fn add_assign(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

/// The counts of a whole program; None: a worker does not answer.
pub type Count = Box<dyn Fn() -> Option<Vec<(Metric, u64)>> + Send>;

/// The answers of the metrics page, for the whole program.
pub struct MetricsPage {
    /// The prefix of each name.
    pub prefix: &'static str,
    /// The counters.
    pub count: Count,
    /// How many threads there are.
    pub workers: usize,
    /// Lines of the log.
    pub lost_lines: ErrorCounter,
    /// Whether clients should go elsewhere.
    pub draining: Arc<AtomicBool>,
}

impl MetricsPage {
    /// For a path of HTTP.
    #[must_use]
    pub fn answer(&self, path: &str) -> Option<Answer> {
        match path {
            "/metrics" => Some(self.metrics()),
            "/healthz" => Some(self.health()),
            _ => None,
        }
    }

    /// The health check, by which a load balancer sends no more clients here once it drains.
    fn health(&self) -> Answer {
        if self.draining.load(Ordering::Relaxed) {
            return Answer::text("503 Service Unavailable", "draining\n");
        }
        match (self.count)() {
            Some(_) => Answer::text("200 OK", "ok\n"),
            None => Answer::text("503 Service Unavailable", "a worker does not answer\n"),
        }
    }

    fn metrics(&self) -> Answer {
        let Some(counted) = (self.count)() else {
            return Answer::text("503 Service Unavailable", "a worker does not answer\n");
        };
        Answer {
            kind: "text/plain; version=0.0.4; charset=utf-8",
            ..Answer::text("200 OK", self.text(&counted))
        }
    }

    fn text(&self, counted: &[(Metric, u64)]) -> String {
        let (mut text, prefix) = (String::new(), self.prefix);
        let mut put = |metric: &Metric, value: String| {
            let Metric { name, kind, help } = metric;
            let kind = match kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
            };
            let _ = write!(
                text,
                "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}\n\
                 {prefix}{name} {value}\n"
            );
        };
        for (metric, sum) in counted {
            put(metric, sum.to_string());
        }
        for (metric, value) in PROGRAM.iter().zip(self.of_program()) {
            if let Some(value) = value {
                put(metric, value);
            }
        }
        text
    }

    /// In the order of [`PROGRAM`]; `None`: the kernel does not say.
    fn of_program(&self) -> [Option<String>; PROGRAM.len()] {
        let open_files = fs::read_dir("/proc/self/fd").map(Iterator::count);
        [
            Some(self.lost_lines.dropped_lines().to_string()),
            Some(u8::from(self.draining.load(Ordering::Relaxed)).to_string()),
            Some(self.workers.to_string()),
            Some(cpu_time().as_secs_f64().to_string()),
            resident().map(|bytes| bytes.to_string()),
            open_files.ok().map(|count| count.to_string()),
        ]
    }
}

/// Serves the page where the settings want it; the address that it is served at.
pub fn serve_metrics(
    settings: &MetricsSettings,
    page: MetricsPage,
) -> Result<Option<SocketAddr>, Failure> {
    let Some(place) = settings.listen else {
        return Ok(None);
    };
    let place = http::serve(place, move |path| page.answer(path)).map_err(|error| {
        let hint = "name an address of this machine and a TCP port that is free";
        SettingsError::new("metrics.listen", format!("{place}: {error}"), hint)
    })?;
    Ok(Some(place))
}

/// The metrics of every program.
const PROGRAM: [Metric; 6] = [
    counter(
        "log_lines_lost_total",
        "Lines of the log that whoever reads it was too slow for.",
    ),
    gauge("draining", "1 from SIGTERM on."),
    gauge("workers", "Threads."),
    counter("cpu_seconds_total", "CPU time of the program."),
    gauge(
        "resident_memory_bytes",
        "Memory of the program, as the kernel counts it.",
    ),
    gauge(
        "open_files",
        "Open files of the program, as the kernel counts them.",
    ),
];

#[expect(
    clippy::disallowed_methods,
    reason = "it is a measure of the program, not a time that protocol logic is told"
)]
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// In bytes, as the kernel counts them.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
