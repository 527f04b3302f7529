//! SEARCH 4.0: leaves slow start when less is delivered than was sent a round-trip time before, and
//! then drains the queue.
//!
//! Source: draft-chung-ccwg-search-09 (March 2026), section 3, with its constants; and where that
//! leaves something open, its authors' `tcp_cubic_search4.0.c`, whose drain this is: a datagram for
//! every three acknowledged, down to what was delivered in the last initial round-trip time.
//! Version 10 of the draft exists; its text was not to be had, so it has not been compared.
//! Departures: between bins the look back is interpolated towards the earlier bin, where the
//! draft's formula takes the later one, which is known to be a mistake (neqo corrects it in the
//! same way). Bins are not scaled to 16 bits. After more than ten bins without an ACK all begins
//! anew, which the draft leaves to the implementation.

use bentpipe_units::{Span, Time};

use crate::acks::Acks;
use crate::log::{LogEvent, Value};
use crate::pacing::Pacing;
use crate::path::PathState;
use crate::slow_start::ring::{EXTRA_BINS, Ring, W, bin_duration};
use crate::slow_start::{Exit, SlowStart, Standard, Step};

const NUM_ACKED_BINS: usize = 11;
const NUM_SENT_BINS: usize = 26;
/// Slow start ends from a normalised difference of 0.26 on, in percent.
const THRESH: u64 = 26;
/// The datagrams that must be acknowledged for one to be sent while the queue drains.
const DRAIN_ACKED: u64 = 3;

/// SEARCH 4.0: slow start that compares what was sent with what arrives.
#[derive(Debug, Clone, Default)]
pub struct Search4 {
    bins: Option<Bins>,
    drain: Option<Drain>,
    event: Option<LogEvent>,
}

/// The queue that slow start has built is let go.
#[derive(Debug, Clone, Copy)]
struct Drain {
    target: u64,
    /// Bytes acknowledged for which nothing has been sent yet.
    acked: u64,
}

impl Drain {
    fn on_acks(&mut self, path: &PathState, bytes: u64) -> Step {
        self.acked += bytes;
        let allowed = self.acked / (DRAIN_ACKED * path.datagram) * path.datagram;
        self.acked %= DRAIN_ACKED * path.datagram;
        let window = path.in_flight + allowed;
        if window > self.target {
            return Step::Window(window);
        }
        Step::Leave(Exit {
            window: self.target,
            ssthresh: self.target,
            reason: "drained",
        })
    }
}

/// Bytes acknowledged and sent since the beginning, at the end of each bin.
#[derive(Debug, Clone)]
struct Bins {
    acked: Ring<NUM_ACKED_BINS>,
    sent: Ring<NUM_SENT_BINS>,
    current: u64,
    end: Time,
    duration: Span,
    initial_rtt: Span,
}

impl Bins {
    fn new(path: &PathState) -> Self {
        let rtt = path.rtt.latest;
        let duration = bin_duration(rtt);
        let mut bins = Self {
            acked: Ring::new(),
            sent: Ring::new(),
            current: 0,
            end: path.now + duration,
            duration,
            initial_rtt: rtt,
        };
        bins.set(0, path.delivered, path.sent);
        bins
    }

    fn set(&mut self, bin: u64, acked: u64, sent: u64) {
        self.acked.set(bin, acked);
        self.sent.set(bin, sent);
    }

    /// How many bins have ended; 0: the current one lasts.
    fn bins_ended(&self, now: Time) -> u64 {
        if now <= self.end {
            return 0;
        }
        (now - self.end).as_nanos() / self.duration.as_nanos() + 1
    }

    /// Bins in which nothing was acknowledged are as the last one before them.
    fn pass(&mut self, path: &PathState, count: u64) {
        let (acked, sent) = (self.acked.get(self.current), self.sent.get(self.current));
        for bin in self.current + 1..self.current + count {
            self.set(bin, acked, sent);
        }
        self.current += count;
        self.end += self.duration * count;
        self.set(self.current, path.delivered, path.sent);
    }

    /// The bytes sent in the window that ended a round-trip time ago. That instant lies between two
    /// bins.
    fn sent_before(&self, last: u64, rtt: Span) -> u64 {
        let window = |last: u64| u128::from(self.sent.get(last) - self.sent.get(last - W));
        let bin = u128::from(self.duration.as_nanos());
        let rest = u128::from(rtt.as_nanos()) % bin;
        let sum = window(last - 1) * rest + window(last) * (bin - rest);
        u64::try_from(sum / bin).expect("a mean of two windows")
    }

    fn check(&self, rtt: Span) -> Check {
        let look_back = rtt.as_nanos() / self.duration.as_nanos();
        let previous = self.current.saturating_sub(look_back);
        let comparable = previous > W && look_back < EXTRA_BINS;
        Check {
            bin: self.current,
            look_back,
            delivered: comparable
                .then(|| self.acked.get(self.current) - self.acked.get(self.current - W)),
            sent: comparable.then(|| self.sent_before(previous, rtt)),
        }
    }

    /// The path's bytes without a queue: those delivered in the last initial round-trip time.
    fn target(&self, path: &PathState) -> u64 {
        let bins = self
            .initial_rtt
            .as_nanos()
            .div_ceil(self.duration.as_nanos());
        let from = self.current.saturating_sub(bins.min(W));
        (self.acked.get(self.current) - self.acked.get(from)).max(path.initial_window)
    }
}

/// The evidence of the windows that end with a bin.
#[derive(Debug, Clone, Copy)]
struct Check {
    bin: u64,
    look_back: u64,
    delivered: Option<u64>,
    sent: Option<u64>,
}

impl Check {
    /// (sent − delivered) / sent ≥ THRESH.
    fn is_choke_point(&self) -> bool {
        let (Some(delivered), Some(sent)) = (self.delivered, self.sent) else {
            return false;
        };
        let missing = u128::from(sent.saturating_sub(delivered));
        sent > 0 && missing * 100 >= u128::from(sent) * u128::from(THRESH)
    }

    #[expect(clippy::cast_precision_loss, reason = "for the log alone")]
    fn norm(&self) -> Option<f64> {
        let sent = self.sent.filter(|bytes| *bytes > 0)? as f64;
        Some((sent - self.delivered? as f64) / sent)
    }

    fn event(&self, path: &PathState, target: Option<u64>) -> LogEvent {
        let mut data = vec![
            ("bin", Value::Integer(self.bin)),
            ("sent_bytes", Value::Integer(path.sent)),
            ("acked_bytes", Value::Integer(path.delivered)),
            ("look_back_bins", Value::Integer(self.look_back)),
            ("latest_rtt", Value::milliseconds(path.rtt.latest)),
        ];
        data.extend(
            self.delivered
                .map(|bytes| ("window_bytes", Value::Integer(bytes))),
        );
        data.extend(
            self.sent
                .map(|bytes| ("expected_bytes", Value::Integer(bytes))),
        );
        data.extend(self.norm().map(|norm| ("norm", Value::Number(norm))));
        data.push(("threshold", Value::Number(0.26)));
        if let Some(target) = target {
            data.push(("window_before", Value::Integer(path.window)));
            data.push(("congestion_window", Value::Integer(target)));
        }
        let name = match target {
            None => "search_bin",
            Some(_) => "search_exit",
        };
        LogEvent {
            now: path.now,
            name,
            data,
        }
    }
}

impl Search4 {
    /// True: the choke point lies behind.
    fn watch(&mut self, path: &PathState) -> bool {
        let bins = self.bins.get_or_insert_with(|| Bins::new(path));
        let passed = bins.bins_ended(path.now);
        if passed > W {
            self.bins = None;
            return false;
        }
        if passed == 0 {
            return false;
        }
        bins.pass(path, passed);
        let check = bins.check(path.rtt.latest);
        let found = check.is_choke_point();
        let target = bins.target(path);
        self.event = Some(check.event(path, found.then_some(target)));
        if found {
            self.drain = Some(Drain { target, acked: 0 });
        }
        found
    }
}

impl SlowStart for Search4 {
    fn name(&self) -> &'static str {
        "search4"
    }

    fn phase(&self) -> &'static str {
        match self.drain {
            None => "slow_start",
            Some(_) => "drain",
        }
    }

    fn trigger(&self) -> &'static str {
        match self.drain {
            None => "ack",
            Some(_) => "search",
        }
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        if self.drain.is_none() && !self.watch(path) {
            return Step::Grow(acks.credit);
        }
        match &mut self.drain {
            None => Step::Grow(acks.credit),
            Some(drain) => drain.on_acks(path, acks.bytes),
        }
    }

    fn pacing(&self, path: &PathState) -> Pacing {
        match self.drain {
            None => Standard.pacing(path),
            Some(_) => Pacing::Gain(125),
        }
    }

    fn take_event(&mut self, _path: &PathState) -> Option<LogEvent> {
        self.event.take()
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
