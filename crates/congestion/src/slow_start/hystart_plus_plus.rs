//! HyStart++: leaves slow start when the RTT has grown, by way of a slower growth that shows
//! whether that was for good.
//!
//! Source: RFC 9406, section 4. Departures: RTT samples contain the ACK delay, since the controller
//! is not told of it. A round ends with the ACK of the first packet that was sent in it, as the
//! sequence numbers of section 4.2 have it; packets of the handshake count. It serves the first
//! slow start of a connection alone, which section 4.3 recommends.

use bentpipe_units::Span;

use crate::acks::Acks;
use crate::log::{LogEvent, Value};
use crate::path::PathState;
use crate::slow_start::{Exit, SlowStart, Step};

/// Least increase of the RTT that counts (section 4.3: 4 ms).
const MIN_RTT_THRESH: Span = Span::from_millis(4);
/// An increase of the RTT that always counts (16 ms).
const MAX_RTT_THRESH: Span = Span::from_millis(16);
/// Between these two it is this part of the last round's RTT that counts.
const MIN_RTT_DIVISOR: u64 = 8;
/// RTT samples that a round must have to be judged.
const N_RTT_SAMPLE: u32 = 8;
/// How much slower conservative slow start (CSS) grows.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds that CSS lasts at most.
const CSS_ROUNDS: u32 = 5;
/// Datagrams by which one ACK may grow the window of a sender that is not paced.
const L: u64 = 8;

/// Conservative slow start.
#[derive(Debug, Clone, Copy)]
struct Css {
    baseline_min_rtt: Span,
    rounds: u32,
}

/// `HyStart++` (RFC 9406): slow start, or conservative slow start, in rounds.
#[derive(Debug, Clone, Default)]
pub struct HyStartPlusPlus {
    last_round_min_rtt: Option<Span>,
    current_round_min_rtt: Option<Span>,
    rtt_samples: u32,
    css: Option<Css>,
    trigger: Option<&'static str>,
    event: Option<LogEvent>,
}

impl HyStartPlusPlus {
    /// > At the start of each round during standard slow start and CSS, initialize the variables
    /// > used to compute the last round's and current round's minimum RTT: lastRoundMinRTT =
    /// > currentRoundMinRTT; currentRoundMinRTT = infinity; rttSampleCount = 0
    ///
    /// True: CSS has lasted long enough.
    fn begin_round(&mut self, path: &PathState) -> bool {
        self.event = Some(self.round_event(path));
        self.last_round_min_rtt = self.current_round_min_rtt.take();
        self.rtt_samples = 0;
        let Some(css) = &mut self.css else {
            return false;
        };
        // > CSS lasts at most CSS_ROUNDS rounds. If the transition into CSS happens in the middle
        // > of a round, that partial round counts towards the limit.
        css.rounds += 1;
        css.rounds >= CSS_ROUNDS
    }

    /// > currentRoundMinRTT = min(currentRoundMinRTT, currRTT); rttSampleCount += 1
    fn sample(&mut self, rtt: Span) {
        let least = self.current_round_min_rtt.map_or(rtt, |min| min.min(rtt));
        self.current_round_min_rtt = Some(least);
        self.rtt_samples += 1;
    }

    /// Looks whether the RTT of this round says something.
    fn judge(&mut self) {
        let Some(current) = self.current_round_min_rtt else {
            return;
        };
        if self.rtt_samples < N_RTT_SAMPLE {
            return;
        }
        match (self.css, self.last_round_min_rtt) {
            // > if (currentRoundMinRTT < cssBaselineMinRtt) cssBaselineMinRtt = infinity; resume
            // > slow start including HyStart++
            (Some(css), _) if current < css.baseline_min_rtt => {
                self.css = None;
                self.trigger = Some("delay_decrease");
            }
            // > if (currentRoundMinRTT >= (lastRoundMinRTT + RttThresh)) cssBaselineMinRtt =
            // > currentRoundMinRTT; exit slow start and enter CSS
            (None, Some(last)) if current >= last + rtt_thresh(last) => {
                self.css = Some(Css {
                    baseline_min_rtt: current,
                    rounds: 0,
                });
                self.trigger = Some("delay_increase");
            }
            _ => {}
        }
    }

    /// The event of a round that ends, for the log.
    fn round_event(&self, path: &PathState) -> LogEvent {
        let mut data = vec![
            ("round", Value::Integer(path.round)),
            ("rtt_samples", Value::Integer(self.rtt_samples.into())),
            ("congestion_window", Value::Integer(path.window)),
        ];
        let rtts = [
            ("rtt_min_ms", self.current_round_min_rtt),
            ("last_round_rtt_min_ms", self.last_round_min_rtt),
            ("rtt_thresh_ms", self.last_round_min_rtt.map(rtt_thresh)),
            ("css_baseline_ms", self.css.map(|css| css.baseline_min_rtt)),
        ];
        data.extend(
            rtts.into_iter()
                .filter_map(|(name, rtt)| Some((name, Value::milliseconds(rtt?)))),
        );
        LogEvent {
            now: path.now,
            name: "hystart_round",
            data,
        }
    }
}

/// > RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH))
fn rtt_thresh(last_round_min_rtt: Span) -> Span {
    let part = Span::from_nanos(last_round_min_rtt.as_nanos() / MIN_RTT_DIVISOR);
    MIN_RTT_THRESH.max(part.min(MAX_RTT_THRESH))
}

impl SlowStart for HyStartPlusPlus {
    fn name(&self) -> &'static str {
        "hystart++"
    }

    fn phase(&self) -> &'static str {
        match self.css {
            None => "slow_start",
            Some(_) => "conservative_slow_start",
        }
    }

    fn trigger(&self) -> &'static str {
        self.trigger.unwrap_or("ack")
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        // > cwnd = cwnd + min(N, L*SMSS)
        // >
        // > A paced TCP implementation SHOULD use L = infinity.
        let limit = if path.paced {
            u64::MAX
        } else {
            L * path.datagram
        };
        let mut growth = acks.credit.min(limit);
        // > cwnd = cwnd + (min(N, L*SMSS) / CSS_GROWTH_DIVISOR)
        if self.css.is_some() {
            growth /= CSS_GROWTH_DIVISOR;
        }
        if acks.new_round && self.begin_round(path) {
            // > If CSS_ROUNDS rounds are complete, enter congestion avoidance by setting the
            // > ssthresh to the current cwnd.
            let window = path.window.saturating_add(growth);
            return Step::Leave(Exit {
                window,
                ssthresh: window,
                reason: "css_rounds",
            });
        }
        if let Some(rtt) = acks.rtt {
            self.sample(rtt);
            self.judge();
        }
        Step::Grow(growth)
    }

    fn take_event(&mut self, _path: &PathState) -> Option<LogEvent> {
        self.event.take()
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
