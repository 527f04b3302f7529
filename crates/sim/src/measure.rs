//! The times and rates of a record (definitions: ARCHITECTURE.md, "Records"): from what was on the wire, or, where its
//! secrets are not known, from what the client reports.

use std::time::Duration;

use bentpipe_endpoint::contract::{Bye, Ready, RequestReport};
use bentpipe_trace::connection::Connection;
use bentpipe_trace::findings::{self, Findings, View};
use bentpipe_trace::{LinkFacts, Metrics};
use bentpipe_units::Time;

use crate::child::Remains;
use crate::coordinator::Coordinator;
use crate::facts::link_facts;
use crate::job::{Job, Outcome, TrialResult};
use crate::verdict::Verdict;

/// A trial that has run.
pub struct Finished {
    pub verdict: Verdict,
    /// Of all files that were to be transferred.
    pub size_bytes: u64,
    /// None: it did not get past the greeting.
    pub coordinator: Option<Coordinator>,
    /// Of the client and the server, here and below.
    pub remains: [Remains; 2],
    pub ready: Option<[Ready; 2]>,
    /// None: it could not be decoded.
    pub wire: Option<Connection>,
}

/// Times in seconds from the client's first packet; null where the event never came.
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
    fn on_wire(metrics: &Metrics, complete: bool) -> Self {
        Self {
            handshake_s: metrics.handshake_s,
            ttfb_s: metrics.ttfb_s,
            completion_s: metrics.completion_s.filter(|_| complete),
            transfer_s: metrics.transfer_s.filter(|_| complete),
        }
    }

    /// Reads the client's report. Completion and transfer need every reply to have ended. `reply` is when the first packet
    /// of a reply arrived: where that packet was not the first of its stream, because that one was lost, the application
    /// got its first byte later.
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

/// 8 · size / transfer, and its share of the forward rate. None where that says nothing: the reply came in one packet, or
/// in one flight so short that the first packet, whose own time on the link is not in `transfer_s`, counts for much.
fn goodput(job: &Job, size_bytes: u64, transfer_s: Option<f64>) -> (Option<f64>, Option<f64>) {
    let rate = job.scenario.forward_rate().map(|rate| float(rate.bps()));
    let goodput = transfer_s
        .filter(|transfer| *transfer > 0.0)
        .map(|transfer| float(8 * size_bytes) / transfer)
        .filter(|goodput| rate.is_none_or(|rate| *goodput <= rate));
    (
        goodput,
        goodput.zip(rate).map(|(goodput, rate)| goodput / rate),
    )
}

/// Nanoseconds as seconds, for reading; nothing is decided by them any more.
#[expect(clippy::cast_precision_loss, reason = "2^53 ns are 104 days")]
pub fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// What the client reports, where nothing better is known.
fn reported(job: &Job, finished: &Finished, first_sent: Time) -> Times {
    let client = &finished.verdict.client;
    let round_trip = job.scenario.rtt();
    let earliest = client
        .handshake_ns
        .map(|at| Time::from_nanos(at) + round_trip);
    let coordinator = finished.coordinator.as_ref();
    let reply = coordinator
        .zip(earliest)
        .and_then(|(it, earliest)| it.log.first_of_reply(earliest));
    let complete = finished.verdict.outcome == Outcome::Ok;
    Times::reported(client, first_sent, reply, complete)
}

/// What was on the wire, in numbers, and the rules that found something wrong with it.
fn on_wire(connection: &Connection, facts: &LinkFacts) -> (Metrics, Vec<&'static str>) {
    let entries = connection.ledger();
    let found = Findings::of(&View {
        connection,
        ledger: &entries,
        link: facts,
        windows: [None, None],
    });
    let wrong = found
        .all
        .into_iter()
        .filter(|finding| finding.verdict == findings::Verdict::Yes);
    let metrics = Metrics::of(connection, &entries, facts);
    (metrics, wrong.map(|finding| finding.rule).collect())
}

/// Puts together what was measured.
pub fn result(job: &Job, finished: &Finished, wall: Duration) -> TrialResult {
    let coordinator = finished.coordinator.as_ref();
    let first_sent = coordinator
        .and_then(|it| it.first_sent)
        .unwrap_or(Time::ZERO);
    let ok = finished.verdict.outcome == Outcome::Ok;
    let facts = link_facts(&job.scenario, Some(finished.size_bytes));
    let wire = finished
        .wire
        .as_ref()
        .map(|connection| on_wire(connection, &facts));
    let (metrics, findings) = wire.unzip();
    let times = match &metrics {
        Some(metrics) => Times::on_wire(metrics, ok),
        None => reported(job, finished, first_sent),
    };
    let forward_metrics = metrics.as_ref().map(|it| &it.forward);
    let (goodput_bps, efficiency) = goodput(job, finished.size_bytes, times.transfer_s);
    let limit_s = job.scenario.limit(finished.size_bytes).as_secs_f64();
    let forward = coordinator
        .map(|it| it.forward.counters())
        .unwrap_or_default();
    let back = coordinator.map(|it| it.back.counters()).unwrap_or_default();
    let (step, received_bytes) = coordinator
        .map(|it| it.log.received(first_sent, it.now))
        .unwrap_or_default();
    let ready = |side: usize| finished.ready.as_ref().map(|ready| &ready[side]);
    let version = |side| ready(side).map(|it| it.version.clone()).unwrap_or_default();
    let driver = |side| ready(side).map(|it| it.driver.clone()).unwrap_or_default();
    TrialResult {
        outcome: finished.verdict.outcome,
        detail: finished.verdict.detail.clone(),
        measured_from: if metrics.is_some() { "wire" } else { "client" },
        handshake_s: times.handshake_s,
        ttfb_s: times.ttfb_s,
        completion_s: times.completion_s,
        transfer_s: times.transfer_s,
        goodput_bps,
        efficiency,
        limit_s,
        share_of_limit: times.completion_s.map(|completion| limit_s / completion),
        virtual_s: coordinator.map_or(0.0, |it| seconds(it.now.as_nanos())),
        wall_s: wall.as_secs_f64(),
        cpu_client_s: finished.remains[0].cpu.as_secs_f64(),
        cpu_server_s: finished.remains[1].cpu.as_secs_f64(),
        cpu_sim_s: own_cpu_s(),
        epochs: coordinator.map_or(0, |it| it.epochs),
        forward_packets: forward.packets,
        forward_bytes: forward.bytes,
        forward_queue_drops: forward.queue_drops,
        forward_losses: forward.losses,
        return_packets: back.packets,
        return_bytes: back.bytes,
        return_queue_drops: back.queue_drops,
        return_losses: back.losses,
        client_version: version(0),
        server_version: version(1),
        client_driver: driver(0),
        server_driver: driver(1),
        retransmitted_share: forward_metrics.and_then(|it| it.retransmitted_share),
        acks_per_data_packet: forward_metrics.and_then(|it| it.acks_per_data_packet),
        mean_packet_bytes: forward_metrics.and_then(|it| it.mean_datagram_bytes),
        largest_packet_bytes: forward_metrics.and_then(|it| it.largest_datagram_bytes),
        return_rate_bps: metrics.as_ref().and_then(|it| it.back.mean_rate_bps),
        rtt_min_ms: metrics.as_ref().and_then(|it| it.rtt_min_ms),
        rtt_median_ms: metrics.as_ref().and_then(|it| it.rtt_median_ms),
        rtt_max_ms: metrics.as_ref().and_then(|it| it.rtt_max_ms),
        in_flight_max_bytes: metrics.as_ref().and_then(|it| it.in_flight_max_bytes),
        findings: findings.unwrap_or_default(),
        received_step_s: seconds(step),
        received_bytes,
        packet_log_sha256: coordinator.map(|it| it.log.sha256()),
    }
}

/// CPU time of this process so far.
#[expect(
    clippy::disallowed_methods,
    reason = "cpu_sim_s is a column of the record, and decides nothing"
)]
fn own_cpu_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default().as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "for a record, far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(first: Option<u64>, last: Option<u64>) -> RequestReport {
        RequestReport {
            path: "/file".to_owned(),
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
            error: None,
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
