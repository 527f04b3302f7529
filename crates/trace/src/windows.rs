//! Congestion windows, as endpoints logged them in qlog, on the clocks of captured connections.
//!
//! A log whose clock is that of the Unix epoch belongs to the connection that began next to its first packet. One whose
//! clock is not named is set by its first packet, and belongs to the connection with the most packets: qlog names
//! connections in ways that differ from stack to stack. Of two logs of the same end, the one that says more counts.

use std::path::PathBuf;

use bentpipe_trace::connection::{Connection, Nanos};
use bentpipe_trace::metrics::seconds;
use bentpipe_trace::qlog::{Clock, Congestion, QlogError, Reader, Vantage};
use bentpipe_trace::quic::End;
use serde::Serialize;

use crate::input;

/// So many spans of time are told apart in a series; each keeps at most four samples.
const SPANS: usize = 500;

/// The congestion windows of connections.
#[derive(Debug, Default)]
pub struct Windows(Vec<Window>);

/// The congestion window of an end, with the times at which it changed.
#[derive(Debug)]
struct Window {
    connection: usize,
    end: End,
    samples: Vec<(Nanos, u64)>,
}

impl Windows {
    /// Reads `files`; what could not be read goes to `errors`. A file that is not there ends it all.
    pub fn read(
        files: &[PathBuf],
        connections: &[Connection],
        errors: &mut Vec<String>,
    ) -> Result<Self, String> {
        let mut windows = Self::default();
        for file in files {
            let bytes = input::read(file)?;
            let mut fail = |why: String| errors.push(format!("{}: {why}", input::name(file)));
            let (logs, error) = logs(&bytes);
            if let Some(error) = error {
                fail(error.to_string());
            }
            for log in logs {
                match Window::of(&log, connections) {
                    Ok(window) => windows.0.extend(window),
                    Err(why) => fail(why.to_owned()),
                }
            }
        }
        Ok(windows)
    }

    /// What an end of a connection logged.
    pub fn of(&self, connection: usize, end: End) -> Option<&[(Nanos, u64)]> {
        let logs = self.0.iter();
        let own = logs.filter(|it| (it.connection, it.end) == (connection, end));
        let longest = own.max_by_key(|it| it.samples.len());
        longest.map(|it| &it.samples[..])
    }

    /// The same of both ends, for `analysis.json`; None if neither logged anything.
    pub fn logged(&self, connection: usize) -> Option<Logged> {
        let of = |end| {
            let cwnd = Series::of(self.of(connection, end)?);
            Some(OfEnd { cwnd })
        };
        let [client, server] = [End::Client, End::Server].map(of);
        (client.is_some() || server.is_some()).then_some(Logged { client, server })
    }
}

/// What the logs of a file say, and the first of what could not be read in it.
fn logs(file: &[u8]) -> (Vec<Congestion>, Option<QlogError>) {
    let mut reader = match Reader::new(file) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut logs: Vec<_> = reader.traces().iter().map(Congestion::new).collect();
    let mut error = None;
    for event in reader.by_ref() {
        match event {
            Ok(event) => logs[event.trace].add(&event),
            Err(cause) => error = error.or(Some(cause)),
        }
    }
    (logs, error)
}

impl Window {
    /// None: the log has no window, or there is no connection.
    fn of(log: &Congestion, connections: &[Connection]) -> Result<Option<Self>, &'static str> {
        if log.congestion_window.is_empty() {
            return Ok(None);
        }
        if log.outline.groups_alternate {
            return Err(
                "events of several connections alternate in it: which is which cannot be told",
            );
        }
        let end = match log.outline.vantage {
            Vantage::Client => End::Client,
            Vantage::Server => End::Server,
            Vantage::Network | Vantage::Unknown => {
                return Err("it does not say whether the client or the server wrote it");
            }
        };
        let first = log.outline.first_packet.ok_or("no packet in it")?;
        let began = |it: &Connection| {
            let mut seen = it.packets.iter().filter_map(|it| it.seen[end as usize]);
            seen.next().unwrap_or(0)
        };
        let start = |it: &Connection| i64::try_from(it.start).unwrap_or(i64::MAX);
        let numbered = connections.iter().enumerate();
        let found = match log.outline.clock {
            Clock::Unix => numbered.min_by_key(|(_, it)| first.abs_diff(start(it))),
            Clock::Unknown => numbered.max_by_key(|(_, it)| it.packets.len()),
        };
        Ok(found.map(|(number, connection)| {
            let zero = match log.outline.clock {
                Clock::Unix => start(connection),
                Clock::Unknown => first - began(connection),
            };
            let samples = log.congestion_window.iter();
            Self {
                connection: number,
                end,
                samples: samples.map(|it| (it.time - zero, it.value)).collect(),
            }
        }))
    }
}

/// What ends logged.
#[derive(Debug, Serialize)]
pub struct Logged {
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
    /// Samples, thinned out: in each span of time the first, the smallest, the largest and the last are kept, so that
    /// steps stay where and as high as they are.
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
