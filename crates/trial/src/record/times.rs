//! The times of a record: from what was on the wire, or, where its secrets are not known, from what
//! the client reports.

use bentpipe_analysis::Metrics;
use bentpipe_endpoint::contract::{Bye, RequestReport};
use bentpipe_units::Time;

use crate::finished::FinishedTrial;
use crate::job::{Job, Role};
use crate::schema::Outcome;

/// Times in seconds from the client's first packet on the connection that is measured; null where
/// the event never came.
#[derive(Debug, Default, PartialEq)]
#[expect(clippy::struct_field_names, reason = "columns carry their unit")]
pub struct Times {
    pub handshake_s: Option<f64>,
    pub ttfb_s: Option<f64>,
    pub completion_s: Option<f64>,
    pub transfer_s: Option<f64>,
}

impl Times {
    /// Reads what was on the wire. Completion and transfer need every reply to have ended.
    pub fn on_wire(metrics: &Metrics, complete: bool) -> Self {
        Self {
            handshake_s: metrics.handshake_s,
            ttfb_s: metrics.ttfb_s,
            completion_s: metrics.completion_s.filter(|_| complete),
            transfer_s: metrics.transfer_s.filter(|_| complete),
        }
    }

    /// The times of a page or a live stream. It is complete when the last reply is there: HTTP over
    /// TCP ends no stream with a reply, so that the wire does not say. Nor is it one transfer:
    /// requests wait for replies, or for their time.
    pub fn of_requests(self, end_s: Option<f64>) -> Self {
        Self {
            completion_s: end_s,
            transfer_s: None,
            ..self
        }
    }

    /// Reads the client's report. Completion and transfer need every reply to have ended. `reply`
    /// is when the first packet of a reply arrived: where that packet was not the first of its
    /// stream, because that one was lost, the application got its first byte later.
    pub fn reported(client: &Bye, first_sent: Time, reply: Option<Time>, complete: bool) -> Self {
        let since = |time: Time| (time - first_sent).as_secs_f64();
        let times = |of: fn(&RequestReport) -> Option<u64>| {
            client.requests.iter().filter_map(of).map(Time::from_nanos)
        };
        let first = times(|request| request.first_byte_ns).min();
        let last = times(|request| request.last_byte_ns)
            .max()
            .filter(|_| complete);
        let start = first.map(|first| reply.map_or(first, |reply| reply.min(first)));
        Self {
            handshake_s: client.handshake_ns.map(|at| since(Time::from_nanos(at))),
            ttfb_s: first.map(since),
            completion_s: last.map(since),
            transfer_s: start
                .zip(last)
                .map(|(start, last)| (last - start).as_secs_f64()),
        }
    }
}

/// The times that the client reports, where nothing better is known. It does not know when its
/// files arrived, nor when a second handshake was complete.
fn reported(job: &Job, finished: &FinishedTrial, start: Time) -> Times {
    let (testcase, flow) = (job.measured().testcase_facts, finished.measured());
    let whole = &flow.verdict.client;
    let client = Bye {
        handshake_ns: whole
            .handshake_ns
            .filter(|_| !testcase.has_two_connections()),
        requests: testcase.measured(&whole.requests).to_vec(),
        ..Bye::default()
    };
    let round_trip = job.hops()[0].rtt();
    let earliest = client
        .handshake_ns
        .map(|at| Time::from_nanos(at) + round_trip);
    let observation = finished.observation.as_ref();
    let reply = observation
        .zip(earliest)
        .and_then(|(it, earliest)| it.hops[0].log.first_of_reply(earliest));
    let complete = flow.verdict.outcome == Outcome::Ok;
    let times = Times::reported(&client, start, reply, complete);
    if testcase.sender == Role::Client {
        return Times {
            ttfb_s: None,
            transfer_s: None,
            ..times
        };
    }
    times
}

/// The end of a trial with two connections of which the second never began has nothing to measure.
pub fn times(
    job: &Job,
    finished: &FinishedTrial,
    metrics: Option<&Metrics>,
    start: Option<Time>,
) -> Times {
    let ok = finished.measured().verdict.outcome == Outcome::Ok;
    match (metrics, start) {
        (Some(metrics), _) => Times::on_wire(metrics, ok),
        (None, Some(start)) => reported(job, finished, start),
        (None, None) => Times::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(first: Option<u64>, last: Option<u64>) -> RequestReport {
        RequestReport {
            path: "/file".to_owned(),
            asked_ns: None,
            bytes: 1,
            first_byte_ns: first,
            last_byte_ns: last,
        }
    }

    #[test]
    fn times_count_from_the_first_packet_and_span_all_requests() {
        let client = Bye {
            handshake_ns: Some(700_000_000),
            requests: vec![
                report(Some(1_400_000_000), Some(2_000_000_000)),
                report(Some(1_300_000_000), Some(5_100_000_000)),
            ],
            ..Bye::default()
        };
        let times = Times::reported(&client, Time::from_nanos(100_000_000), None, true);
        let expected = Times {
            handshake_s: Some(0.6),
            ttfb_s: Some(1.2),
            completion_s: Some(5.0),
            transfer_s: Some(3.8),
        };
        assert_eq!(times, expected);
        let unfinished = Times::reported(&client, Time::from_nanos(100_000_000), None, false);
        assert_eq!(
            unfinished,
            Times {
                completion_s: None,
                transfer_s: None,
                ..expected
            }
        );
        assert_eq!(
            Times::reported(&Bye::default(), Time::ZERO, None, true),
            Times::default()
        );
    }
}
