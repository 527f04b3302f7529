//! Congestion windows, as endpoints logged them, on the clocks of captured connections.

use bentpipe_wire::quic::End;
use serde::Serialize;

use crate::connection::Nanos;
use crate::durations::seconds;

/// The number of spans of time that a series tells apart; each keeps at most four samples.
const SPANS: usize = 500;

/// The congestion windows of connections. Of two logs of the same end, the one that says more
/// counts.
#[derive(Debug, Default)]
pub struct CongestionWindows(Vec<CongestionWindow>);

/// The congestion window of one end of a connection, as it logged it.
#[derive(Debug)]
pub struct CongestionWindow {
    /// The number of the connection.
    pub connection: usize,
    /// The end whose window it is.
    pub end: End,
    /// The times at which it changed, and the bytes from then on.
    pub samples: Vec<(Nanos, u64)>,
}

impl CongestionWindows {
    /// The windows that any number of logs gave.
    #[must_use]
    pub fn new(logged: Vec<CongestionWindow>) -> Self {
        Self(logged)
    }

    /// The congestion window that an end of a connection logged.
    #[must_use]
    pub fn of(&self, connection: usize, end: End) -> Option<&[(Nanos, u64)]> {
        let logs = self.0.iter();
        let own = logs.filter(|it| (it.connection, it.end) == (connection, end));
        let longest = own.max_by_key(|it| it.samples.len());
        longest.map(|it| &it.samples[..])
    }

    /// The same of both ends, for `analysis.json`; None if neither logged anything.
    pub(crate) fn logged(&self, connection: usize) -> Option<Logged> {
        let of = |end| {
            let cwnd = Series::of(self.of(connection, end)?);
            Some(OfEnd { cwnd })
        };
        let [client, server] = [End::Client, End::Server].map(of);
        (client.is_some() || server.is_some()).then_some(Logged { client, server })
    }
}

/// The congestion windows of both ends, thinned out.
#[derive(Debug, Serialize)]
pub(crate) struct Logged {
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<OfEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<OfEnd>,
}

#[derive(Debug, Serialize)]
struct OfEnd {
    cwnd: Series,
}

/// A value from each of these times on.
#[derive(Debug, Default, Serialize)]
struct Series {
    time_s: Vec<f64>,
    bytes: Vec<u64>,
}

impl Series {
    /// Samples, thinned out: in each span of time the first, the smallest, the largest and the last
    /// are kept, so that steps stay where and as high as they are.
    fn of(samples: &[(Nanos, u64)]) -> Self {
        let mut series = Self::default();
        let (Some((first, _)), Some((last, _))) = (samples.first(), samples.last()) else {
            return series;
        };
        let spans = i64::try_from(SPANS).expect("a small number");
        let span = |time: Nanos| {
            i128::from(time - first) * i128::from(spans) / i128::from(last - first + 1)
        };
        for part in samples.chunk_by(|one, next| span(one.0) == span(next.0)) {
            let by_value = |at: &usize| part[*at].1;
            let smallest = (0..part.len()).min_by_key(by_value);
            let largest = (0..part.len()).max_by_key(by_value);
            let mut kept: Vec<usize> = [Some(0), smallest, largest, Some(part.len() - 1)]
                .into_iter()
                .flatten()
                .collect();
            kept.sort_unstable();
            kept.dedup();
            for at in kept {
                series.time_s.push(seconds(part[at].0));
                series.bytes.push(part[at].1);
            }
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_keeps_its_steps() {
        // Grows by a byte per millisecond, and collapses once for a millisecond.
        let samples: Vec<(Nanos, u64)> = (0..100_000_u32)
            .map(|at| {
                (
                    i64::from(at) * 1_000_000,
                    if at == 54_321 {
                        2
                    } else {
                        10_000 + u64::from(at)
                    },
                )
            })
            .collect();
        let series = Series::of(&samples);
        assert!(series.time_s.len() <= 4 * SPANS);
        assert!(series.time_s.is_sorted());
        assert_eq!((series.time_s[0], series.bytes[0]), (0.0, 10_000));
        assert_eq!(series.time_s.last(), Some(&99.999));
        let low = series.bytes.iter().position(|bytes| *bytes == 2).unwrap();
        assert_eq!(series.time_s[low].to_bits(), 54.321_f64.to_bits());
        assert_eq!(Series::of(&samples[..3]).bytes, [10_000, 10_001, 10_002]);
        assert!(Series::of(&[]).bytes.is_empty());
    }
}
