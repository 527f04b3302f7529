//! What Prometheus asks for, and whether the program is well.
//!
//! The page is written here, in its text format 0.0.4. The crate `prometheus-client` writes
//! `OpenMetrics`, in which a counter `connections_total` is of a family `connections`: the gauge of
//! that name could not stand beside it, and operators' rules and the records of trials have both.
//! It would have taken the place of the eight lines that write a number.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bentpipe_pep::{Metric, MetricKind, Statistics};
use rustix::time::{ClockId, clock_gettime};
use tracing_appender::non_blocking::ErrorCounter;

use super::http::Answer;
use super::worker::{Message, Shared, WorkerCounters};

const PREFIX: &str = "bentpipe_pep_";
/// A worker answers within a turn; one that does not in this time hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// The answers of the metrics page, for the whole program.
pub struct Metrics {
    pub shared: Arc<Shared>,
    pub lost_lines: ErrorCounter,
    pub draining: Arc<AtomicBool>,
}

impl Metrics {
    /// For a path of HTTP.
    pub fn answer(&self, path: &str) -> Option<Answer> {
        match path {
            "/metrics" => Some(self.metrics()),
            "/healthz" => Some(self.health()),
            _ => None,
        }
    }

    /// Whoever balances load should send nobody here any more once it drains.
    fn health(&self) -> Answer {
        if self.draining.load(Ordering::Relaxed) {
            return Answer::text("503 Service Unavailable", "draining\n");
        }
        match self.count() {
            Some(_) => Answer::text("200 OK", "ok\n"),
            None => Answer::text("503 Service Unavailable", "a worker does not answer\n"),
        }
    }

    fn metrics(&self) -> Answer {
        let Some(counted) = self.count() else {
            return Answer::text("503 Service Unavailable", "a worker does not answer\n");
        };
        Answer {
            kind: "text/plain; version=0.0.4; charset=utf-8",
            ..Answer::text("200 OK", self.text(&counted))
        }
    }

    /// Asks all workers.
    fn count(&self) -> Option<Vec<WorkerCounters>> {
        let ask = |inbox: &super::worker::Inbox| {
            let (answer, wait) = sync_channel(1);
            inbox.send(Message::Count(answer));
            wait
        };
        let waits: Vec<_> = self.shared.inboxes.iter().map(ask).collect();
        let answers = waits
            .into_iter()
            .map(|wait| wait.recv_timeout(PATIENCE).ok());
        answers.collect()
    }

    fn text(&self, counted: &[WorkerCounters]) -> String {
        let mut text = String::new();
        let mut put = |metric: Metric, value: String| {
            let Metric { name, kind, help } = metric;
            let kind = match kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
            };
            let _ = write!(
                text,
                "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}\n\
                 {PREFIX}{name} {value}\n"
            );
        };
        for (metric, sum) in sums(counted) {
            put(metric, sum.to_string());
        }
        for (metric, value) in PROGRAM.into_iter().zip(self.of_program(counted)) {
            if let Some(value) = value {
                put(metric, value);
            }
        }
        text
    }

    /// In the order of [`PROGRAM`]; `None`: the kernel does not say.
    fn of_program(&self, counted: &[WorkerCounters]) -> [Option<String>; PROGRAM.len()] {
        let of =
            |field: fn(&WorkerCounters) -> u64| counted.iter().map(field).sum::<u64>().to_string();
        let open_files = fs::read_dir("/proc/self/fd").map(Iterator::count);
        [
            Some(of(|it| it.socket_errors)),
            Some(of(|it| it.handed_on)),
            Some(of(|it| it.lost)),
            Some(self.lost_lines.dropped_lines().to_string()),
            Some(u8::from(self.draining.load(Ordering::Relaxed)).to_string()),
            Some(counted.len().to_string()),
            Some(cpu_time().as_secs_f64().to_string()),
            resident().map(|bytes| bytes.to_string()),
            open_files.ok().map(|count| count.to_string()),
        ]
    }
}

/// What the program counts beside its proxies.
const PROGRAM: [Metric; 9] = [
    counter("socket_errors_total", "Errors of sockets."),
    counter(
        "steered_datagrams_total",
        "Datagrams that came to the wrong worker and were handed on.",
    ),
    counter(
        "steered_datagrams_lost_total",
        "Datagrams that came to the wrong worker and were lost because the right one was too busy.",
    ),
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

const fn counter(name: &'static str, help: &'static str) -> Metric {
    let kind = MetricKind::Counter;
    Metric { name, kind, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    let kind = MetricKind::Gauge;
    Metric { name, kind, help }
}

/// Of all workers together.
fn sums(counted: &[WorkerCounters]) -> Vec<(Metric, u64)> {
    let each = |it: &WorkerCounters| it.statistics.entries().collect::<Vec<_>>();
    let mut sums = Statistics::default().entries().collect::<Vec<_>>();
    for entries in counted.iter().map(each) {
        for (sum, (_, value)) in sums.iter_mut().zip(entries) {
            sum.1 += value;
        }
    }
    sums
}

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
