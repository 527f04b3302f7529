//! What Prometheus asks for, and whether the program is well.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bentpipe_pep::{Kind, Statistics};
use rustix::time::{ClockId, clock_gettime};

use super::http::Answer;
use super::worker::{Counted, Message, Shared};

const PREFIX: &str = "bentpipe_pep_";
/// A worker answers within a turn; one that does not in this time hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers for the whole program.
pub struct Metrics {
    pub shared: Arc<Shared>,
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
    fn count(&self) -> Option<Vec<Counted>> {
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

    fn text(&self, counted: &[Counted]) -> String {
        let mut text = String::new();
        let mut put = |name: &str, kind: &str, value: String| {
            let _ = write!(
                text,
                "# TYPE {PREFIX}{name} {kind}\n{PREFIX}{name} {value}\n"
            );
        };
        for (name, kind, sum) in sums(counted) {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            put(name, kind, sum.to_string());
        }
        let of = |field: fn(&Counted) -> u64| counted.iter().map(field).sum::<u64>().to_string();
        put("socket_errors_total", "counter", of(|it| it.socket_errors));
        put("steered_datagrams_total", "counter", of(|it| it.handed_on));
        put("steered_datagrams_lost_total", "counter", of(|it| it.lost));
        put(
            "log_lines_lost_total",
            "counter",
            self.shared.log.lost().to_string(),
        );
        put(
            "draining",
            "gauge",
            u8::from(self.draining.load(Ordering::Relaxed)).to_string(),
        );
        put("workers", "gauge", counted.len().to_string());
        put(
            "cpu_seconds_total",
            "counter",
            cpu_time().as_secs_f64().to_string(),
        );
        if let Some(bytes) = resident() {
            put("resident_memory_bytes", "gauge", bytes.to_string());
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            put("open_files", "gauge", files.count().to_string());
        }
        text
    }
}

/// Of all workers together.
fn sums(counted: &[Counted]) -> Vec<(&'static str, Kind, u64)> {
    let each = |it: &Counted| it.statistics.entries().collect::<Vec<_>>();
    let mut sums = Statistics::default().entries().collect::<Vec<_>>();
    for entries in counted.iter().map(each) {
        for (sum, (_, _, value)) in sums.iter_mut().zip(entries) {
            sum.2 += value;
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
