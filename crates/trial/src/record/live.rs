//! The measures of a live stream: how it would have been played, from when its segments came.

use bentpipe_endpoint::LiveStream;
use bentpipe_endpoint::contract::RequestReport;
use bentpipe_units::Time;

use crate::job::FlowJob;
use crate::numbers::{float, seconds};
use crate::verdict::Verdict;

const NS_PER_MS: u64 = 1_000_000;

/// The playback of a live stream; null where there was none, or nothing of it came. Playing begins
/// when the first segment is there, and stops where the next one is not when it is due.
#[derive(Debug, Default, PartialEq)]
pub struct Playback {
    pub startup_s: Option<f64>,
    pub stalls: Option<u64>,
    pub stalled_s: Option<f64>,
    pub media_rate_bps: Option<f64>,
    pub rate_changes: Option<u64>,
    pub latency_s: Option<f64>,
    /// Until its last segment was there; null unless all came.
    pub end_s: Option<f64>,
}

/// A segment that came: when, and at which rate.
struct Segment {
    came_ns: u64,
    rate_bps: u64,
}

impl Playback {
    /// The playback of a flow that began at `start` and ended at `end`. The stream's time counts
    /// from its start, too.
    pub fn of(flow: &FlowJob, verdict: &Verdict, [start, end]: [Time; 2]) -> Self {
        let requests = &verdict.client.requests;
        match &flow.live {
            Some(stream) if requests.len() == flow.requests.len() => {
                Self::new(stream, requests, [start, end])
            }
            _ => Self::default(),
        }
    }

    fn new(stream: &LiveStream, requests: &[RequestReport], [start, end]: [Time; 2]) -> Self {
        let whole = |(rate, it): (&u64, &RequestReport)| {
            let is_whole = it.bytes == stream.segment_bytes(*rate);
            let came = it.last_byte_ns.filter(|_| is_whole)?;
            Some(Segment {
                came_ns: came.saturating_sub(start.as_nanos()),
                rate_bps: *rate,
            })
        };
        let all = requests.chunks(stream.rates_bps.len());
        let count = all.len();
        let came: Vec<Segment> = all
            .map_while(|all| stream.rates_bps.iter().zip(all).find_map(whole))
            .collect();
        let Some(first) = came.first() else {
            return Self::default();
        };
        let lasts = stream.segment_ms * NS_PER_MS;
        let mut due = first.came_ns;
        let (mut stalls, mut stalled) = (0, 0);
        for segment in &came {
            if segment.came_ns > due {
                stalls += 1;
                stalled += segment.came_ns - due;
                due = segment.came_ns;
            }
            due += lasts;
        }
        let played_after = due - lasts * came.len() as u64;
        // The segments before have been played, and the next one had not come at the end.
        let end = end.as_nanos().saturating_sub(start.as_nanos());
        if came.len() < count && end > due {
            stalls += 1;
            stalled += end - due;
        }
        let changes = came
            .windows(2)
            .filter(|it| it[0].rate_bps != it[1].rate_bps);
        let rates: u64 = came.iter().map(|it| it.rate_bps).sum();
        // The age of what is played now: the first segment began `initial_segments` before the
        // client did.
        let latency = played_after + stream.initial_segments * lasts;
        let last = came.last().map(|it| seconds(it.came_ns));
        Self {
            startup_s: Some(seconds(first.came_ns)),
            stalls: Some(stalls),
            stalled_s: Some(seconds(stalled)),
            media_rate_bps: Some(float(rates) / float(came.len() as u64)),
            rate_changes: Some(changes.count() as u64),
            latency_s: Some(seconds(latency)),
            end_s: last.filter(|_| came.len() == count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [u64; 2] = [1_000_000, 3_000_000];

    /// The requests of segments that came at such times, in seconds, at the rate with that number;
    /// none if there is no time.
    fn requests(segments: &[(Option<f64>, usize)]) -> Vec<RequestReport> {
        let one = |&(came, rate): &(Option<f64>, usize)| {
            (0..RATES.len()).map(move |number| {
                let came = came.filter(|_| number == rate);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a test"
                )]
                let last = came.map(|it| (it * 1e9) as u64);
                RequestReport {
                    bytes: came.map_or(0, |_| RATES[number] / 4),
                    last_byte_ns: last,
                    ..RequestReport::default()
                }
            })
        };
        segments.iter().flat_map(one).collect()
    }

    fn playback(segments: &[(Option<f64>, usize)]) -> Playback {
        let stream = LiveStream {
            segment_ms: 2000,
            initial_segments: 3,
            rates_bps: RATES.to_vec(),
        };
        let ends = [1, 10].map(|it| Time::from_nanos(it * 1_000_000_000));
        Playback::new(&stream, &requests(segments), ends)
    }

    #[test]
    fn a_segment_that_is_not_there_when_it_is_due_stalls_the_stream() {
        let played = playback(&[
            (Some(2.5), 0), // plays from 1.5 to 3.5 s
            (Some(3.0), 1),
            (Some(7.0), 1), // due at 5.5, comes at 6.0
            (Some(8.5), 0),
        ]);
        let expected = Playback {
            startup_s: Some(1.5),
            stalls: Some(1),
            stalled_s: Some(0.5),
            media_rate_bps: Some(2_000_000.0),
            rate_changes: Some(2),
            latency_s: Some(8.0),
            end_s: Some(7.5),
        };
        assert_eq!(played, expected);
    }

    #[test]
    fn what_is_behind_a_missing_segment_is_not_played() {
        let cut = playback(&[(Some(2.0), 0), (None, 0), (Some(9.0), 1)]);
        assert_eq!((cut.startup_s, cut.end_s), (Some(1.0), None));
        let stalled = (cut.stalls, cut.stalled_s);
        assert_eq!(stalled, (Some(1), Some(6.0)), "from 3 s to the end");
        assert_eq!(cut.media_rate_bps, Some(1_000_000.0));
        assert_eq!(playback(&[(None, 0)]), Playback::default());
    }
}
