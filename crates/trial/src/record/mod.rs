//! The record of a trial: measures of its evidence and verdicts (`schemas/record.toml` defines
//! them). Where the test case has two connections, they are of what is behind the first; of TCP's,
//! which carry a file each, of all together.

mod ecn;
mod flows;
mod frames;
mod hops;
mod link_facts;
mod live;
mod page;
mod paths;
mod queueing;
mod times;
mod transfer;
mod tunnel;

use std::time::Duration;

use bentpipe_analysis::Metrics;
use bentpipe_analysis::connection::Protocol;
use bentpipe_link::HostName;
use bentpipe_units::Time;

use self::flows::{detail, fairness, outcome};
use self::frames::FrameArrivals;
use self::hops::{hops, proxies, sent};
use self::link_facts::{MeasuredFiles, client_facts};
use self::live::Playback;
use self::page::PageTimes;
use self::paths::paths;
use self::times::times;
use self::transfer::{goodput, moved, rate_bps, received, runner_transfer_s};
use self::tunnel::tunnel;
use crate::evidence::{DecodedConnection, HopObservation, TestbedObservation, on_wire};
use crate::finished::{FinishedFlow, FinishedTrial};
use crate::job::Job;
use crate::numbers::seconds;
use crate::schema::{EcnResult, LinkCounts, Outcome, Queueing, TrialResult};

pub use self::link_facts::path_facts;

/// Whether the streams of these connections can be read, as far as measures need it.
fn is_readable(here: &HopObservation, measured: &[&DecodedConnection]) -> bool {
    let is_sealed =
        |it: &&DecodedConnection| it.connection.protocol == Protocol::Tcp && !it.is_readable();
    here.can_read(measured) && !measured.iter().any(is_sealed)
}

/// How many packets of these connections of QUIC could not be decoded.
fn undecoded_packets(here: &HopObservation, measured: &[&DecodedConnection]) -> Option<u64> {
    let mut all = measured.iter();
    let is_quic = all.any(|it| it.connection.protocol != Protocol::Tcp);
    Some(here.gap(measured).filter(|_| is_quic)?.undecoded())
}

/// The measures of requests that the client reports on.
struct OfRequests {
    page: PageTimes,
    playback: Playback,
    arrivals: FrameArrivals,
}

impl OfRequests {
    /// The measures of the flow that is measured and began at `start`.
    fn new(job: &Job, finished: &FinishedTrial, start: Time) -> Self {
        let (flow, verdict) = (job.measured(), &finished.measured().verdict);
        let end = finished
            .observation
            .as_ref()
            .map_or(start, |it| it.flows[0].end);
        Self {
            page: PageTimes::of(flow, verdict, start),
            playback: Playback::of(flow, verdict, [start, end]),
            arrivals: FrameArrivals::of(flow, verdict),
        }
    }

    /// The record with these measures.
    fn complete(self, record: TrialResult) -> TrialResult {
        TrialResult {
            rs_s: self.page.rs_s,
            fcp_s: self.page.fcp_s,
            lcp_s: self.page.lcp_s,
            speed_index_s: self.page.speed_index_s,
            dcl_s: self.page.dcl_s,
            plt_s: self.page.plt_s,
            requests_at_once: self.page.requests_at_once,
            startup_s: self.playback.startup_s,
            stalls: self.playback.stalls,
            stalled_s: self.playback.stalled_s,
            media_rate_bps: self.playback.media_rate_bps,
            rate_changes: self.playback.rate_changes,
            latency_s: self.playback.latency_s,
            frames: self.arrivals.frames,
            late_frames: self.arrivals.late_frames,
            lost_frames: self.arrivals.lost_frames,
            in_time_share: self.arrivals.in_time_share,
            frame_age_median_s: self.arrivals.frame_age_median_s,
            frame_age_p95_s: self.arrivals.frame_age_p95_s,
            frame_age_p99_s: self.arrivals.frame_age_p99_s,
            frame_age_max_s: self.arrivals.frame_age_max_s,
            ..record
        }
    }

    /// Until all was there; of frames nothing says so.
    fn end_s(&self) -> Option<f64> {
        self.page.plt_s.or(self.playback.end_s)
    }
}

/// The files of a flow that began at `start`, as measures need them.
fn measured_files(job: &Job, flow: &FinishedFlow, start: Option<Time>) -> MeasuredFiles {
    let measured = job.measured();
    // The amount of data is not known beforehand.
    let is_open =
        measured.duration_ns.is_some() || measured.live.is_some() || measured.frames.is_some();
    MeasuredFiles {
        testcase: measured.testcase_facts,
        size_bytes: Some(flow.measured_bytes).filter(|_| !is_open),
        seed: job.seed.0,
        start: start.unwrap_or(Time::ZERO),
    }
}

/// The program's version and driver, as it gave them when it was greeted; empty where it was not.
fn words_of(flow: &FinishedFlow, program: usize) -> (String, String) {
    let ready = flow.ready.as_ref().map(|ready| &ready[program]);
    let words = ready.map(|it| (it.version.clone(), it.driver.clone()));
    words.unwrap_or_default()
}

/// Puts together what was measured.
#[must_use]
pub fn result(job: &Job, finished: &FinishedTrial, wall: Duration) -> TrialResult {
    let observation = finished.observation.as_ref();
    let flow = finished.measured();
    let testcase = job.measured().testcase_facts;
    let here = &flow.hops[0];
    let measured = here.measured(testcase);
    let start = finished.start(job);
    let files = measured_files(job, flow, start);
    let facts = client_facts(job, files, observation);
    let seen = is_readable(here, &measured).then(|| on_wire(&measured, &facts));
    let (metrics, findings) = seen.flatten().unzip();
    let said = OfRequests::new(job, finished, files.start);
    let mut times = times(job, finished, metrics.as_ref(), start);
    if job.measured().is_reported() {
        let is_ok = flow.verdict.outcome == Outcome::Ok;
        times = times.of_requests(said.end_s().filter(|_| is_ok));
    }
    let (bytes, end) = moved(job, finished, files, &mut times);
    // Of a transfer that did not end, a rate up to there would stand beside those of whole ones.
    let whole = metrics.as_ref().filter(|it| it.transfer_s.is_some());
    let sent = metrics.as_ref().map(|it: &Metrics| sent(it, testcase));
    let rate = rate_bps(job, files, end, times.transfer_s);
    let (goodput_bps, efficiency) = goodput(bytes, times.transfer_s, rate);
    let limit_s = facts.limit_s;
    let connections = here.completed();
    // Browsers open some that they do not use.
    let largest = measured.iter().max_by_key(|it| it.connection.packets.len());
    let second = if testcase.has_two_connections() {
        largest
    } else {
        connections.as_ref().and_then(|all| all.get(1))
    };
    let passed = observation.map(|it| it.on_links()[job.satellite_link_hop()]);
    let (step, received_bytes) = received(job, observation.zip(start));
    let (jain_index, flows) = fairness(job, finished, start, step);
    let [client, server] = [0, job.proxies.len() + 1];
    let (client_version, client_driver) = words_of(flow, client);
    let (server_version, server_driver) = words_of(flow, server);
    said.complete(TrialResult {
        outcome: outcome(finished),
        detail: detail(job, finished),
        transport: job.measured().transport.clone(),
        alpn: job.measured().alpn.clone(),
        measured_from: if metrics.is_some() { "wire" } else { "client" },
        undecoded_packets: undecoded_packets(here, &measured),
        handshake_s: times.handshake_s,
        ttfb_s: times.ttfb_s,
        completion_s: times.completion_s,
        transfer_s: times.transfer_s,
        runner_transfer_s: runner_transfer_s(job, flow),
        first_mb_s: first_mb_s(job, metrics.as_ref()),
        goodput_bps,
        efficiency,
        limit_s,
        saved_round_trips: testcase.saved_round_trips,
        share_of_limit: limit_s
            .zip(times.completion_s)
            .map(|(limit, completion)| limit / completion),
        connections: connections.as_ref().map(|all| all.len() as u64),
        resumed: second.and_then(|it| it.establishment.resumed),
        zero_rtt_bytes: largest.and_then(|it| it.establishment.zero_rtt_bytes),
        virtual_s: observation.map_or(0.0, |it| seconds(it.end.as_nanos())),
        wall_s: wall.as_secs_f64(),
        cpu_client_s: flow.exits[client].cpu.as_secs_f64(),
        cpu_server_s: flow.exits[server].cpu.as_secs_f64(),
        cpu_sim_s: own_cpu_s(),
        memory_client_bytes: flow.exits[client].peak_memory_bytes,
        memory_server_bytes: flow.exits[server].peak_memory_bytes,
        epochs: observation.map_or(0, |it| it.epochs),
        links: passed.map(LinkCounts::from).unwrap_or_default(),
        queueing: queueing(job, observation),
        client_version,
        server_version,
        client_driver,
        server_driver,
        retransmitted_share: sent.and_then(|it| it.retransmitted_share),
        acks_per_data_packet: sent.and_then(|it| it.acks_per_data_packet),
        mean_packet_bytes: sent.and_then(|it| it.mean_datagram_bytes),
        largest_packet_bytes: sent.and_then(|it| it.largest_datagram_bytes),
        return_rate_bps: whole.and_then(|it| it.back.mean_rate_bps),
        rtt_min_ms: metrics.as_ref().and_then(|it| it.rtt_min_ms),
        rtt_median_ms: metrics.as_ref().and_then(|it| it.rtt_median_ms),
        rtt_max_ms: metrics.as_ref().and_then(|it| it.rtt_max_ms),
        in_flight_max_bytes: metrics.as_ref().and_then(|it| it.in_flight_max_bytes),
        findings: findings.unwrap_or_default(),
        ecn: metrics.as_ref().map(EcnResult::from).unwrap_or_default(),
        received_step_s: seconds(step),
        in_order_bytes: in_order_bytes(job, metrics.as_ref(), step, received_bytes.len()),
        received_bytes,
        jain_index,
        flows,
        proxies: proxies(job, flow),
        hops: hops(job, observation, flow, files),
        paths: paths(job, finished, start),
        tunnel: tunnel(job, observation),
        client_statistics: flow.verdict.statistics_of(HostName::Client),
        server_statistics: flow.verdict.statistics_of(HostName::Server),
        packet_log_hash: observation.map(TestbedObservation::hash),
        fidelity: observation
            .map(|it| it.fidelity.clone())
            .unwrap_or_default(),
        ..TrialResult::default()
    })
}

/// The queueing of the packets of all flows, on the hop that has the satellite.
fn queueing(job: &Job, observation: Option<&TestbedObservation>) -> Queueing {
    let hop = job.hops()[job.satellite_hop()];
    let log = observation.map(|it| &it.hops[job.satellite_hop()].log);
    log.map(|log| Queueing::of(log, hop, None))
        .unwrap_or_default()
}

/// Marks of files that one connection carries from end to end; those of an upload past a proxy
/// reach the proxy.
fn first_mb_s(job: &Job, metrics: Option<&Metrics>) -> Vec<f64> {
    let is_direct = job.last_hop(job.measured().testcase_facts) == 0;
    let marks = metrics.filter(|_| is_direct && !job.measured().is_reported());
    marks.map(|it| it.first_mb_s.clone()).unwrap_or_default()
}

/// The curve of what the receiver of the files could read, of `points` steps of `step` nanoseconds;
/// nothing of an upload past a proxy.
fn in_order_bytes(job: &Job, metrics: Option<&Metrics>, step: u64, points: usize) -> Vec<u64> {
    let is_direct = job.last_hop(job.measured().testcase_facts) == 0;
    let Some(metrics) = metrics.filter(|it| is_direct && !it.in_order.is_empty()) else {
        return Vec::new();
    };
    let (mut read, mut sum) = (metrics.in_order.iter().peekable(), 0);
    let until = |at: u64| {
        while let Some((_, bytes)) = read.next_if(|(time, _)| time.cast_unsigned() <= at) {
            sum += bytes;
        }
        sum
    };
    (1..=points as u64)
        .map(|point| point * step)
        .map(until)
        .collect()
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
