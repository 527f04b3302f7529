//! SEARCH 2.0: leaves slow start when the bytes delivered no longer double from one round-trip time
//! to the next.
//!
//! Source: the WPI report on SEARCH in QUIC (2024), section 4.4, algorithm 1 and the listing of
//! appendix A. Where these two differ, what is here is the listing, which is what was measured:
//! both windows are of ten whole bins, the look back is rounded to whole bins and is at least one,
//! what was skipped over counts as empty, and after a pause longer than all bins everything begins
//! anew. Departures: bins are exact to the nanosecond, not to the millisecond; the number of a bin
//! does not wrap after 255.
//!
//! `search` takes from the window what has been delivered in the last two initial round-trip times
//! (algorithm 1, `LOWER_CWND`); the look back of this sum is rounded as the other is, and the
//! window that it leaves is no smaller than the initial one, which is a departure. `search-keep`
//! leaves the window as it is, as the listing does. `search-log` never leaves, but notes when it
//! would have. `search-hybla` is what section 7.1.2 proposes: SEARCH watches while Hybla grows, and
//! the first to say so ends slow start. Three more follow from what the report leaves to later:
//! - `search-below` (section 7.1.1) leaves with less than the path holds, so that the queue of slow
//!   start drains: 80 % of what the last look back of one initial round-trip time delivered, in the
//!   least RTT. The report names no amount; this one is a choice.
//! - `search-rtt` (section 7.1.2) grows less while the RTT rises, as [`RttGrowth`] has it.
//! - `search-jump` (section 7.2.2) watches [`JumpStart`], from its first ACK on: if the jump loses
//!   nothing, slow start follows it, which SEARCH may end.
//!
//! Nothing can be compared before 14 bins have passed, 4.9 round-trip times after the first ACK. By
//! then Hybla alone, growing eightfold, would have overshot by far: `search-hybla` keeps Hybla's
//! own way out, the rate that it measures.

use bentpipe_units::{Span, Time};

use crate::acks::{Acks, CongestionEvent, LostPacket, per_second};
use crate::log::{LogEvent, Value};
use crate::pacing::Pacing;
use crate::path::PathState;
use crate::slow_start::ring::{EXTRA_BINS, Ring, W, bin_duration};
use crate::slow_start::rtt_growth::RttGrowth;
use crate::slow_start::{Exit, Hybla, JumpStart, Response, SlowStart, Standard, Step};

const NUM_BINS: usize = 25;
/// Slow start ends beyond a normalised difference of 0.35, in percent.
const THRESH: u64 = 35;
/// The share of what the path holds that `search-below` leaves, in percent.
const BELOW: u64 = 80;

/// The change of the window when SEARCH has found the choke point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Lower,
    /// To less than the path holds.
    Below,
    Keep,
    /// It is noted, and slow start goes on.
    Log,
}

/// SEARCH: slow start that watches the rate of delivery.
#[derive(Debug, Clone)]
pub struct Search {
    name: &'static str,
    found: Found,
    growth: Box<dyn SlowStart>,
    bins: Option<Bins>,
    event: Option<LogEvent>,
    noted_exit: bool,
}

impl Search {
    /// SEARCH as the report proposes it.
    #[must_use]
    pub fn new() -> Self {
        Self::of("search", Found::Lower, Box::new(Standard))
    }

    /// The window stays as it is when slow start ends.
    #[must_use]
    pub fn keeping() -> Self {
        Self::of("search-keep", Found::Keep, Box::new(Standard))
    }

    /// Only looks on.
    #[must_use]
    pub fn log_only() -> Self {
        Self::of("search-log", Found::Log, Box::new(Standard))
    }

    /// Grows as Hybla does.
    #[must_use]
    pub fn with_hybla() -> Self {
        Self::of("search-hybla", Found::Lower, Box::<Hybla>::default())
    }

    /// Leaves with less than the path holds.
    #[must_use]
    pub fn below() -> Self {
        Self::of("search-below", Found::Below, Box::new(Standard))
    }

    /// Grows less while the RTT rises.
    #[must_use]
    pub fn with_rtt_growth() -> Self {
        Self::of("search-rtt", Found::Lower, Box::<RttGrowth>::default())
    }

    /// Begins with Jump Start.
    #[must_use]
    pub fn with_jump_start() -> Self {
        Self::of("search-jump", Found::Lower, Box::<JumpStart>::default())
    }

    fn of(name: &'static str, found: Found, growth: Box<dyn SlowStart>) -> Self {
        Self {
            name,
            found,
            growth,
            bins: None,
            event: None,
            noted_exit: false,
        }
    }

    /// The window after slow start. `search` leaves out what has piled up since the path was full.
    fn left(&self, path: &PathState, bins: &Bins) -> u64 {
        let least = path.initial_window.min(path.window);
        match self.found {
            Found::Keep => path.window,
            Found::Lower | Found::Log => path.window.saturating_sub(bins.overshoot()).max(least),
            Found::Below => (bins.held(path.rtt.min) * BELOW / 100).clamp(least, path.window),
        }
    }

    fn watch(&mut self, path: &PathState, bytes: u64) -> Option<Exit> {
        let rtt = path.rtt.latest;
        let bins = self.bins.get_or_insert_with(|| Bins::new(path.now, rtt));
        if bins.are_stale(path.now) {
            *bins = Bins::new(path.now, rtt);
        }
        let check = bins.roll(path.now, rtt);
        bins.add(bytes);
        let check = check?;
        let bins = self.bins.as_ref().expect("they are there");
        let (overshoot, window) = (bins.overshoot(), self.left(path, bins));
        let found = check.is_choke_point() && !self.noted_exit;
        self.noted_exit |= found;
        self.event = Some(check.event(path, found.then_some((overshoot, window))));
        (found && self.found != Found::Log).then_some(Exit {
            window,
            ssthresh: window,
            reason: "search",
        })
    }
}

impl Default for Search {
    fn default() -> Self {
        Self::new()
    }
}

/// Bytes delivered, by the time at which that was.
#[derive(Debug, Clone)]
struct Bins {
    delivered: Ring<NUM_BINS>,
    /// The bin that is being filled.
    current: u64,
    end: Time,
    duration: Span,
    initial_rtt: Span,
}

impl Bins {
    fn new(now: Time, rtt: Span) -> Self {
        let duration = bin_duration(rtt);
        Self {
            delivered: Ring::new(),
            current: 0,
            end: now + duration,
            duration,
            initial_rtt: rtt,
        }
    }

    fn are_stale(&self, now: Time) -> bool {
        (now - self.end).as_nanos() / self.duration.as_nanos() > W + EXTRA_BINS
    }

    /// The number of bins that is closest to `span`.
    fn closest(&self, span: Span) -> u64 {
        let (span, bin) = (span.as_nanos(), self.duration.as_nanos());
        let whole = span / bin;
        if span % bin > bin / 2 {
            whole + 1
        } else {
            whole
        }
    }

    fn add(&mut self, bytes: u64) {
        let before = self.delivered.get(self.current);
        self.delivered.set(self.current, before + bytes);
    }

    fn open_next(&mut self) {
        self.end += self.duration;
        self.current += 1;
        self.delivered.set(self.current, 0);
    }

    /// The sum of so many bins, of which `last` is the last one.
    fn sum(&self, last: u64, count: u64) -> u64 {
        let first = (last + 1).saturating_sub(count);
        (first..=last).map(|bin| self.delivered.get(bin)).sum()
    }

    /// The bytes delivered in the last two initial round-trip times: the bin that has just been
    /// opened is not among the bins.
    fn overshoot(&self) -> u64 {
        self.sum(self.current - 1, self.closest(self.initial_rtt * 2))
    }

    /// The bytes that are on the way on a path of this RTT whose queue is empty, if they leave as
    /// fast as what was delivered in the last initial round-trip time.
    fn held(&self, min_rtt: Span) -> u64 {
        let count = self.closest(self.initial_rtt).max(1);
        let rate = per_second(self.sum(self.current - 1, count), self.duration * count);
        PathState::bytes_in(rate, min_rtt)
    }

    /// Completes bins whose time is over, and looks at the windows that end with the last one.
    fn roll(&mut self, now: Time, rtt: Span) -> Option<Check> {
        while now - self.duration > self.end {
            self.open_next();
        }
        if now <= self.end {
            return None;
        }
        let shift = self.closest(rtt).max(1);
        let bin = self.current;
        let comparable = bin >= W + shift && shift < EXTRA_BINS;
        let check = Check {
            bin,
            bytes: self.sum(bin, 1),
            shift,
            window: self.sum(bin, W),
            earlier: comparable.then(|| self.sum(bin - shift, W)),
        };
        self.open_next();
        Some(check)
    }
}

/// The evidence of a completed bin.
#[derive(Debug, Clone, Copy)]
struct Check {
    bin: u64,
    bytes: u64,
    /// How many bins it is compared with those before.
    shift: u64,
    window: u64,
    earlier: Option<u64>,
}

impl Check {
    /// (2·earlier − window) / (2·earlier) > THRESH.
    fn is_choke_point(&self) -> bool {
        let expected = 2 * u128::from(self.earlier.unwrap_or(0));
        let missing = expected.saturating_sub(self.window.into());
        missing * 100 > expected * u128::from(THRESH)
    }

    #[expect(clippy::cast_precision_loss, reason = "for the log alone")]
    fn norm(&self) -> Option<f64> {
        let expected = 2.0 * self.earlier.filter(|bytes| *bytes > 0)? as f64;
        Some((expected - self.window as f64) / expected)
    }

    fn event(&self, path: &PathState, exit: Option<(u64, u64)>) -> LogEvent {
        let mut data = vec![
            ("bin", Value::Integer(self.bin)),
            ("delivered_bytes", Value::Integer(self.bytes)),
            ("window_bytes", Value::Integer(self.window)),
            ("look_back_bins", Value::Integer(self.shift)),
            ("latest_rtt", Value::milliseconds(path.rtt.latest)),
        ];
        data.extend(
            self.earlier
                .map(|bytes| ("expected_bytes", Value::Integer(2 * bytes))),
        );
        data.extend(self.norm().map(|norm| ("norm", Value::Number(norm))));
        data.push(("threshold", Value::Number(0.35)));
        if let Some((overshoot, window)) = exit {
            data.push(("overshoot_bytes", Value::Integer(overshoot)));
            data.push(("window_before", Value::Integer(path.window)));
            data.push(("congestion_window", Value::Integer(window)));
        }
        let name = match exit {
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

impl SlowStart for Search {
    fn name(&self) -> &'static str {
        self.name
    }

    fn phase(&self) -> &'static str {
        self.growth.phase()
    }

    fn on_sent(&mut self, path: &PathState, bytes: u64) {
        self.growth.on_sent(path, bytes);
    }

    fn on_lost(&mut self, path: &PathState, lost: &LostPacket) {
        self.growth.on_lost(path, lost);
    }

    fn on_congestion(&mut self, path: &PathState, event: &CongestionEvent) -> Response {
        self.growth.on_congestion(path, event)
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        match self.watch(path, acks.bytes) {
            Some(exit) => Step::Leave(exit),
            None => self.growth.on_acks(path, acks),
        }
    }

    fn pacing(&self, path: &PathState) -> Pacing {
        self.growth.pacing(path)
    }

    fn take_event(&mut self, path: &PathState) -> Option<LogEvent> {
        self.event.take().or_else(|| self.growth.take_event(path))
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
