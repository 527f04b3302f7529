//! The log of a congestion controller: series of its metrics, and its phases.
//!
//! Source: `quic:recovery_metrics_updated` and `quic:congestion_state_updated`,
//! draft-ietf-quic-qlog-quic-events sections "Recovery events". Departures that stacks make, and
//! how they are met:
//!
//! - aioquic writes `cwnd` for `congestion_window`.
//! - quinn 0.11 writes round-trip times in seconds, the schema has milliseconds. They are taken as
//!   seconds if the trace is titled `quinn` and its first one is below 10: the RTT that quinn
//!   assumes before it measures one is 333 ms.
//! - Before draft-02, `time_units` is the unit of round-trip times too.
//! - noq and quinn write 2⁶⁴ − 1 for a slow start threshold that is not set yet. Such a sample is
//!   left out.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::Event;
use crate::outline::Outline;
use crate::reader::Reader;
use crate::time::{self, SECOND};
use crate::trace::Trace;

/// A sample of a metric: its value from this time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds on the trace's clock.
    pub time: i64,
    /// In the unit of its series.
    pub value: u64,
}

/// A phase of congestion control from this time on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Nanoseconds on the trace's clock.
    pub time: i64,
    /// As the stack calls it: `slow_start`, `congestion_avoidance`, `recovery`,
    /// `application_limited`, …
    pub name: String,
    /// The phase before, if the stack says it.
    pub old: Option<String>,
    /// The reason of the change, if the stack says one.
    pub trigger: Option<String>,
    /// The congestion window at its beginning in bytes, if the stack says it (no field of the
    /// schema; noq's controllers of Bentpipe have it).
    pub window: Option<u64>,
}

impl Phase {
    /// The phase that begins with an event, if that is `quic:congestion_state_updated`.
    #[must_use]
    pub fn of(event: &Event<'_>) -> Option<Self> {
        if event.name != "quic:congestion_state_updated" {
            return None;
        }
        let state = parse::<State<'_>>(event)?;
        Some(Self {
            time: event.time,
            name: state.new,
            old: state.old,
            trigger: state.trigger,
            window: state.congestion_window.and_then(count),
        })
    }
}

/// The congestion control metrics of one trace. A series has a sample where its value changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CongestionLog {
    /// Where it was logged, and on which clock.
    pub outline: Outline,
    /// Bytes.
    pub congestion_window: Vec<Sample>,
    /// Bytes.
    pub bytes_in_flight: Vec<Sample>,
    /// Bytes.
    pub ssthresh: Vec<Sample>,
    /// Nanoseconds.
    pub smoothed_rtt: Vec<Sample>,
    /// Nanoseconds.
    pub latest_rtt: Vec<Sample>,
    /// Nanoseconds.
    pub min_rtt: Vec<Sample>,
    /// Bits per second.
    pub pacing_rate: Vec<Sample>,
    /// In order.
    pub phases: Vec<Phase>,
    rtt_unit: RttUnit,
}

/// The unit of round-trip times in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RttUnit {
    said: i64,
    may_be_seconds: bool,
    unit: Option<i64>,
}

impl RttUnit {
    pub fn of(trace: &Trace) -> Self {
        Self {
            said: trace.times.unit(),
            may_be_seconds: trace.title.as_deref() == Some("quinn"),
            unit: None,
        }
    }

    /// A round-trip time in nanoseconds.
    pub fn read(&mut self, number: &str) -> Option<i64> {
        let (said, may_be_seconds) = (self.said, self.may_be_seconds);
        let unit = *self.unit.get_or_insert_with(|| {
            let below_ten = time::nanoseconds(number, 1).is_some_and(|value| value < 10);
            if may_be_seconds && below_ten {
                SECOND
            } else {
                said
            }
        });
        time::nanoseconds(number, unit)
    }
}

#[derive(Deserialize)]
struct Metrics<'a> {
    #[serde(borrow)]
    congestion_window: Option<&'a RawValue>,
    #[serde(borrow)]
    cwnd: Option<&'a RawValue>,
    #[serde(borrow)]
    bytes_in_flight: Option<&'a RawValue>,
    #[serde(borrow)]
    ssthresh: Option<&'a RawValue>,
    #[serde(borrow)]
    smoothed_rtt: Option<&'a RawValue>,
    #[serde(borrow)]
    latest_rtt: Option<&'a RawValue>,
    #[serde(borrow)]
    min_rtt: Option<&'a RawValue>,
    #[serde(borrow)]
    pacing_rate: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct State<'a> {
    old: Option<String>,
    new: String,
    trigger: Option<String>,
    #[serde(borrow)]
    congestion_window: Option<&'a RawValue>,
}

impl CongestionLog {
    /// One for each trace of the file. What cannot be read is left out: `Reader` says what that is.
    #[must_use]
    pub fn of(reader: Reader<'_>) -> Vec<Self> {
        let mut found: Vec<_> = reader.traces().iter().map(Self::new).collect();
        for event in reader.flatten() {
            found[event.trace].add(&event);
        }
        found
    }

    /// The log of a trace, before its first event.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        Self {
            outline: Outline::new(trace),
            congestion_window: Vec::new(),
            bytes_in_flight: Vec::new(),
            ssthresh: Vec::new(),
            smoothed_rtt: Vec::new(),
            latest_rtt: Vec::new(),
            min_rtt: Vec::new(),
            pacing_rate: Vec::new(),
            phases: Vec::new(),
            rtt_unit: RttUnit::of(trace),
        }
    }

    /// Takes the next event of the trace.
    pub fn add(&mut self, event: &Event<'_>) {
        self.outline.add(event);
        self.phases.extend(Phase::of(event));
        if event.name == "quic:recovery_metrics_updated"
            && let Some(metrics) = parse::<Metrics<'_>>(event)
        {
            self.add_metrics(event.time, &metrics);
        }
    }

    fn add_metrics(&mut self, time: i64, metrics: &Metrics<'_>) {
        let window = metrics.congestion_window.or(metrics.cwnd);
        change(&mut self.congestion_window, time, window.and_then(count));
        change(
            &mut self.bytes_in_flight,
            time,
            metrics.bytes_in_flight.and_then(count),
        );
        let ssthresh = metrics
            .ssthresh
            .and_then(count)
            .filter(|bytes| *bytes < u64::MAX);
        change(&mut self.ssthresh, time, ssthresh);
        change(
            &mut self.pacing_rate,
            time,
            metrics.pacing_rate.and_then(count),
        );
        for (series, value) in [
            (&mut self.smoothed_rtt, metrics.smoothed_rtt),
            (&mut self.latest_rtt, metrics.latest_rtt),
            (&mut self.min_rtt, metrics.min_rtt),
        ] {
            let rtt = value.and_then(|value| self.rtt_unit.read(value.get()));
            change(series, time, rtt.and_then(|rtt| u64::try_from(rtt).ok()));
        }
    }
}

fn parse<'a, T: Deserialize<'a>>(event: &Event<'a>) -> Option<T> {
    serde_json::from_str(event.data?.get()).ok()
}

/// A number of bytes or bits; some stacks write it as a float, or in quotes as draft-01 allowed.
fn count(value: &RawValue) -> Option<u64> {
    let text = value.get().trim_matches('"');
    text.parse()
        .ok()
        .or_else(|| u64::try_from(time::nanoseconds(text, 1)?).ok())
}

fn change(series: &mut Vec<Sample>, time: i64, value: Option<u64>) {
    if let Some(value) = value
        && series.last().is_none_or(|last| last.value != value)
    {
        series.push(Sample { time, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;
    use crate::{Clock, VantagePoint};

    fn of(lines: &[&str]) -> CongestionLog {
        let file = lines.join("\n");
        let mut found = CongestionLog::of(Reader::new(file.as_bytes()).unwrap());
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    fn samples(series: &[Sample]) -> Vec<(i64, u64)> {
        series
            .iter()
            .map(|sample| (sample.time / MILLISECOND, sample.value))
            .collect()
    }

    #[test]
    fn metrics_become_series_of_changes() {
        let found = of(&[
            r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","trace":{"title":"noq","vantage_point":{"type":"server"}}}"#,
            r#"{"time":1,"name":"quic:packet_received","data":{}}"#,
            r#"{"time":2,"name":"quic:recovery_metrics_updated","data":{"min_rtt":333.5,"smoothed_rtt":333,"latest_rtt":9,
                "congestion_window":12000,"bytes_in_flight":1200,"ssthresh":18446744073709551615,"pacing_rate":1e6}}"#
                .replace('\n', "").as_str(),
            r#"{"time":3,"name":"quic:recovery_metrics_updated","data":{"congestion_window":12000,"bytes_in_flight":0.0}}"#,
            r#"{"time":4,"name":"quic:recovery_metrics_updated","data":{"ssthresh":6000,"bytes_in_flight":7}}"#,
            r#"{"time":5,"name":"quic:congestion_state_updated","data":{"old":"slow_start","new":"recovery","trigger":"loss","congestion_window":6000}}"#,
            r#"{"time":6,"name":"quic:recovery_metrics_updated","data":"what?"}"#,
        ]);
        assert_eq!(
            (found.outline.vantage, found.outline.clock),
            (VantagePoint::Server, Clock::Unknown)
        );
        assert_eq!(found.outline.first_packet, Some(MILLISECOND));
        assert_eq!(samples(&found.congestion_window), [(2, 12_000)]);
        assert_eq!(samples(&found.bytes_in_flight), [(2, 1200), (3, 0), (4, 7)]);
        assert_eq!(samples(&found.ssthresh), [(4, 6000)]);
        assert_eq!(samples(&found.min_rtt), [(2, 333_500_000)]);
        assert_eq!(samples(&found.smoothed_rtt), [(2, 333_000_000)]);
        assert_eq!(samples(&found.latest_rtt), [(2, 9_000_000)]);
        assert_eq!(samples(&found.pacing_rate), [(2, 1_000_000)]);
        assert_eq!(
            found.phases,
            [Phase {
                time: 5 * MILLISECOND,
                name: "recovery".to_owned(),
                old: Some("slow_start".to_owned()),
                trigger: Some("loss".to_owned()),
                window: Some(6000),
            }]
        );
    }

    #[test]
    fn departures_of_stacks_are_met() {
        let header = |title: &str| {
            format!(
                r#"{{"qlog_version":"0.3","qlog_format":"NDJSON","trace":{{"title":"{title}"}}}}"#
            )
        };
        let first = r#"{"time":0,"name":"recovery:metrics_updated","data":{"smoothed_rtt":0.333,"cwnd":5}}"#;
        let later = r#"{"time":1,"name":"recovery:metrics_updated","data":{"smoothed_rtt":12}}"#;
        let quinn = of(&[
            &header("quinn"),
            first,
            later,
            r#"{"time":2,"name":"transport:packet_sent","data":{}}"#,
        ]);
        assert_eq!(
            samples(&quinn.smoothed_rtt),
            [(0, 333_000_000), (1, 12_000_000_000)]
        );
        assert_eq!(samples(&quinn.congestion_window), [(0, 5)]);
        assert_eq!(quinn.outline.vantage, VantagePoint::Client);
        let other = of(&[&header("other"), first, later]);
        assert_eq!(
            samples(&other.smoothed_rtt),
            [(0, 333_000), (1, 12_000_000)]
        );
        let mended = of(&[&header("quinn"), later, first]);
        assert_eq!(
            samples(&mended.smoothed_rtt),
            [(1, 12_000_000), (0, 333_000)]
        );
    }
}
