//! The rates of the links, printed once a second.

use std::fmt::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use bentpipe_emulator::{Running, SegmentCounters};
use bentpipe_link::Direction;
use bentpipe_units::Time;

const INTERVAL: Duration = Duration::from_secs(1);

/// Prints a line for each second until the other end of `stopped` is gone. Where there are several
/// paths, each has its name there.
pub fn show(running: &Running, paths: &[&str], stopped: &Receiver<()>) {
    let mut before = (running.now(), running.segment_counters());
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let now = (running.now(), running.segment_counters());
        eprintln!("{}", line(&before, &now, paths));
        before = now;
    }
}

/// Both directions of all segments between two moments.
fn line(
    before: &(Time, Vec<SegmentCounters>),
    now: &(Time, Vec<SegmentCounters>),
    paths: &[&str],
) -> String {
    let seconds = (now.0 - before.0).as_secs_f64();
    let mut text = format!("{:7.1} s", (now.0 - Time::ZERO).as_secs_f64());
    let is_only = now.1.len() == Direction::BOTH.len();
    for (then, one) in before.1.iter().zip(&now.1) {
        let segment = if is_only {
            String::new()
        } else {
            format!("{} ", one.segment.name())
        };
        let path = match paths {
            [] | [_] => String::new(),
            several => format!("{} ", several[one.path]),
        };
        #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
        let rate = (one.released_bytes - then.released_bytes) as f64 * 8e-6 / seconds;
        write!(
            text,
            " | {path}{segment}{} {rate:7.3} Mbit/s, queue {:4} kB, drops {}, losses {}",
            one.direction.name(),
            one.queue_bytes / 1000,
            one.queue_drops - then.queue_drops,
            one.losses - then.losses,
        )
        .expect("a string takes all");
    }
    text
}
