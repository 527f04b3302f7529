//! The amount of data, their rate, and the times of their arrival.

use bentpipe_analysis::connection::Protocol;
use bentpipe_analysis::durations::seconds;
use bentpipe_analysis::metrics::one_rtt_span;
use bentpipe_link::{Direction, Ideal};
use bentpipe_units::{Span, Time};

use super::link_facts::{MeasuredFiles, link_facts};
use super::times::Times;
use crate::evidence::{TestbedObservation, on_wire};
use crate::finished::{FinishedFlow, FinishedTrial};
use crate::job::Job;
use crate::numbers::{float, nanos};
use crate::schema::Outcome;

/// 8 · size / transfer, and its share of the rate of the link. None where that says nothing: the
/// files came in one packet, or in one flight so short that the first packet, whose own time on the
/// link is not in `transfer_s`, counts for much.
pub fn goodput(
    size_bytes: u64,
    transfer_s: Option<f64>,
    rate: Option<f64>,
) -> (Option<f64>, Option<f64>) {
    let goodput = transfer_s
        .filter(|transfer| *transfer > 0.0)
        .map(|transfer| float(8 * size_bytes) / transfer)
        .filter(|goodput| rate.is_none_or(|rate| *goodput <= rate));
    (
        goodput,
        goodput.zip(rate).map(|(goodput, rate)| goodput / rate),
    )
}

/// The rate of the link in the direction of the files; of one that changes the mean over the
/// transfer, as it was in this trial. `end` is when the last byte arrived.
pub fn rate_bps(
    job: &Job,
    files: MeasuredFiles,
    end: Option<Time>,
    transfer_s: Option<f64>,
) -> Option<f64> {
    let (scenario, direction) = (&job.scenario, files.testcase.direction());
    let nominal = scenario.rate_of_all_paths(direction);
    let nominal = nominal.map(|rate| float(rate.bps()));
    let span = end.zip(transfer_s);
    let Some((end, transfer)) = span.filter(|_| !scenario.are_all_steady(direction)) else {
        return nominal;
    };
    let ideal = Ideal::new(scenario, direction, files.seed);
    let could = ideal.bit_nanos(end - nanos(transfer), end)?;
    #[expect(clippy::cast_precision_loss, reason = "for a record")]
    let could = could as f64;
    Some(could / 1e9 / transfer)
}

/// When the last byte of files arrived that were complete `completion_s` seconds after the start.
fn last_byte(job: &Job, files: MeasuredFiles, completion_s: f64) -> Time {
    // An upload is complete when the client has the answer, and transferred before that. Of several
    // paths, the answer is taken to have come over the fastest.
    let answer = match files.testcase.direction() {
        Direction::Forward => Span::ZERO,
        Direction::Return => job.scenario.min_one_way_of_all_paths(Direction::Forward),
    };
    files.start + nanos(completion_s) - answer
}

/// The result of a transfer that was cut at `end`: its bytes, and the time since the first of them.
fn lasted(job: &Job, flow: &FinishedFlow, end: Time) -> (u64, Option<f64>) {
    let arrivals = flow.arrivals(job, job.measured().testcase_facts);
    let (first, bytes) = if let Some(arrivals) = arrivals {
        let arrived = arrivals.iter().take_while(|(at, _)| *at < end);
        let bytes = arrived.map(|(_, bytes)| bytes).sum();
        (arrivals.first().map(|(at, _)| *at), bytes)
    } else {
        let said = &flow.verdict.client.requests;
        let first = said.iter().filter_map(|it| it.first_byte_ns).min();
        let bytes = said.iter().map(|it| it.bytes).sum();
        (first.map(Time::from_nanos), bytes)
    };
    (bytes, first.map(|first| (end - first).as_secs_f64()))
}

/// The bytes that were moved, and when the last of them arrived; completes the time that they took
/// where that is not on the client's hop, or is no file's.
pub fn moved(
    job: &Job,
    finished: &FinishedTrial,
    files: MeasuredFiles,
    times: &mut Times,
) -> (u64, Option<Time>) {
    let (observation, flow) = (finished.observation.as_ref(), finished.measured());
    if let (Some(_), Some(observation)) = (job.measured().duration_ns, observation) {
        let end = observation.flows[0].end;
        let (bytes, transfer_s) = lasted(job, flow, end);
        times.transfer_s = transfer_s;
        return (bytes, Some(end));
    }
    if job.last_hop(files.testcase) > 0 {
        times.transfer_s = transfer_s(job, flow, files);
    }
    let end = times.completion_s.map(|s| last_byte(job, files, s));
    (flow.measured_bytes, end)
}

/// How long the files of an upload took to the server, which is not on the client's hop.
fn transfer_s(job: &Job, flow: &FinishedFlow, files: MeasuredFiles) -> Option<f64> {
    let (hop, observed) = job.hops().into_iter().zip(&flow.hops).next_back()?;
    let seen = observed.carrying();
    let seen = observed.can_read(&seen).then_some(seen)?;
    let complete = flow.verdict.outcome == Outcome::Ok;
    let (metrics, _) = on_wire(&seen, &link_facts(hop, files))?;
    metrics.transfer_s.filter(|_| complete)
}

/// From the first to the last 1-RTT packet that reached the files' receiver, as the interop runner
/// measures a transfer.
pub fn runner_transfer_s(job: &Job, flow: &FinishedFlow) -> Option<f64> {
    let measured = job.measured();
    let is_fixed = measured.duration_ns.is_none() && !measured.is_reported();
    if flow.verdict.outcome != Outcome::Ok || !is_fixed {
        return None;
    }
    let testcase = measured.testcase_facts;
    let hop = job.last_hop(testcase);
    let seen = match hop {
        0 => flow.hops[0].measured(testcase),
        _ => flow.hops[hop].carrying(),
    };
    let quic = seen
        .into_iter()
        .find(|it| it.connection.protocol != Protocol::Tcp)?;
    one_rtt_span(&quic.connection, testcase.sending_end()).map(seconds)
}

/// The curve of what has reached the receiver of the files, with its step, from a time on.
pub fn received(job: &Job, from: Option<(&TestbedObservation, Time)>) -> (u64, Vec<u64>) {
    let Some((observation, start)) = from else {
        return (0, Vec::new());
    };
    let testcase = job.measured().testcase_facts;
    let log = &observation.hops[job.last_hop(testcase)].log;
    log.received(testcase.direction(), start, observation.flows[0].end)
}
