//! `HyStart`, the slow start of CUBIC in Linux: leaves when ACKs arrive without a pause for as long
//! as the path is, or when the RTT has grown.
//!
//! Source: S. Ha and I. Rhee, Taming the elephants: new TCP slow start, Computer Networks 55
//! (2011), cited by the CUBIC paper, with the thresholds as Linux has them
//! (`net/ipv4/tcp_cubic.c`), whose names they bear here. Departures: no allowance of up to 1 ms for
//! the aggregation of ACKs by network cards (`hystart_ack_delay`). RTT samples contain the ACK
//! delay.

use bentpipe_units::{Span, Time};

use crate::acks::Acks;
use crate::log::{LogEvent, Value};
use crate::path::PathState;
use crate::slow_start::{Exit, SlowStart, Step};

/// Samples of a round that are gathered before its RTT is judged.
const HYSTART_MIN_SAMPLES: u32 = 8;
/// Least increase of the RTT that counts; one of an eighth of the least RTT counts between this
const HYSTART_DELAY_MIN: Span = Span::from_millis(4);
/// and this.
const HYSTART_DELAY_MAX: Span = Span::from_millis(16);
/// Datagrams; below such a window nothing is looked at.
const HYSTART_LOW_WINDOW: u64 = 16;
/// ACKs that are no further apart belong to one train.
const HYSTART_ACK_DELTA: Span = Span::from_millis(2);

#[derive(Debug, Clone, Copy)]
struct Round {
    began: Time,
    /// When the last ACK came of the train that began with the round.
    train_end: Time,
    min_rtt: Option<Span>,
    samples: u32,
}

/// `HyStart`: slow start with two ways out.
#[derive(Debug, Clone, Default)]
pub struct HyStart {
    round: Option<Round>,
    event: Option<LogEvent>,
}

impl Round {
    fn at(now: Time) -> Self {
        Self {
            began: now,
            train_end: now,
            min_rtt: None,
            samples: 0,
        }
    }

    /// The train of ACKs is as long as the path: the sender's packets fill it. A window that is not
    /// paced leaves at once, so that half of the way says so already.
    fn train_fills(&mut self, path: &PathState) -> bool {
        if path.now - self.train_end > HYSTART_ACK_DELTA {
            return false;
        }
        self.train_end = path.now;
        let whole = path.rtt.min.as_nanos();
        let threshold = if path.paced { whole } else { whole / 2 };
        (path.now - self.began).as_nanos() > threshold
    }

    fn delay_has_grown(&mut self, path: &PathState, rtt: Span) -> bool {
        let least = self.min_rtt.map_or(rtt, |min| min.min(rtt));
        self.min_rtt = Some(least);
        if self.samples < HYSTART_MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        least > path.rtt.min + delay_threshold(path)
    }

    fn event(&self, path: &PathState) -> LogEvent {
        let mut data = vec![
            ("round", Value::Integer(path.round)),
            ("rtt_samples", Value::Integer(self.samples.into())),
            ("congestion_window", Value::Integer(path.window)),
            (
                "ack_train_ms",
                Value::milliseconds(self.train_end - self.began),
            ),
            ("rtt_thresh_ms", Value::milliseconds(delay_threshold(path))),
        ];
        data.extend(
            self.min_rtt
                .map(|rtt| ("rtt_min_ms", Value::milliseconds(rtt))),
        );
        LogEvent {
            now: path.now,
            name: "hystart_round",
            data,
        }
    }
}

fn delay_threshold(path: &PathState) -> Span {
    let eighth = Span::from_nanos(path.rtt.min.as_nanos() / 8);
    eighth.clamp(HYSTART_DELAY_MIN, HYSTART_DELAY_MAX)
}

impl SlowStart for HyStart {
    fn name(&self) -> &'static str {
        "hystart"
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        if acks.new_round
            && let Some(ended) = self.round.replace(Round::at(acks.now))
        {
            self.event = Some(ended.event(path));
        }
        let round = self.round.get_or_insert_with(|| Round::at(acks.now));
        if path.window < HYSTART_LOW_WINDOW * path.datagram {
            return Step::Grow(acks.credit);
        }
        let train = round.train_fills(path);
        let delay = acks.rtt.is_some_and(|rtt| round.delay_has_grown(path, rtt));
        if !train && !delay {
            return Step::Grow(acks.credit);
        }
        self.event = Some(round.event(path));
        Step::Leave(Exit {
            window: path.window,
            ssthresh: path.window,
            reason: if train { "ack_train" } else { "delay_increase" },
        })
    }

    fn take_event(&mut self, _path: &PathState) -> Option<LogEvent> {
        self.event.take()
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
