//! The measures of a record (`schemas/record.toml` defines them). Where the test case has two connections, they are of
//! the second.

use std::error::Error;
use std::fs;
use std::time::Duration;

use bentpipe_analysis::Metrics;
use bentpipe_analysis::metrics::OneWay;
use bentpipe_endpoint::contract::{Bye, Ready};
use bentpipe_link::{Direction, Hop, HostName, Ideal};
use bentpipe_units::{Span, Time};

use crate::course::{Course, Lifetime};
use crate::facts::{Files, link_facts};
use crate::fairness::{detail, fairness, outcome};
use crate::hop::{hops, proxies};
use crate::job::Job;
use crate::play::Play;
use crate::remains::Remains;
use crate::schema::{LinkCounts, Outcome, TrialResult};
use crate::sight::{Sight, on_wire};
use crate::testcase::TestCase;
use crate::times::Times;
use crate::trace::Trace;
use crate::verdict::Verdict;
use crate::wire::Seen;

/// A trial that has run.
pub struct Finished {
    /// The first is the one that is measured.
    pub flows: Vec<Played>,
    /// What the testbed saw; None: it did not get past the greeting.
    pub course: Option<Course>,
}

/// A flow that has run.
pub struct Played {
    /// How it ended.
    pub verdict: Verdict,
    /// Of the files that are measured; 0 of a duration, whose files are never there as a whole.
    pub measured_bytes: u64,
    /// Of its programs, from the client to the server, here and below.
    pub remains: Vec<Remains>,
    /// What they answered to HELLO.
    pub ready: Option<Vec<Ready>>,
    /// What was seen on each hop, from the client to the server.
    pub sights: Vec<Sight>,
}

impl Finished {
    /// Looks at what arrived and at what was on the wire, which decide what became of each flow. Nothing to look at is there if
    /// the programs did not get past the greeting.
    pub fn examine(&mut self, plays: &[Play]) -> Result<(), Box<dyn Error>> {
        if let Some(course) = &self.course {
            for (play, played) in plays.iter().zip(&mut self.flows) {
                play.examine(played, &course.hops)?;
            }
        }
        Ok(())
    }

    /// Leaves in the trial's folder its trace, if that is wanted, and what is needed to find out why programs failed. `program` is
    /// the testbed's, which the trace names.
    pub fn leave_files(&self, plays: &[Play], program: &'static str) -> Result<(), Box<dyn Error>> {
        if let (Some(course), Some(job)) = (&self.course, plays.first().map(Play::job))
            && job.trace
        {
            fs::create_dir_all(&job.folder)?;
            for (number, (hop, seen)) in job.hops().iter().zip(&course.hops).enumerate() {
                let key_logs = plays.iter().map(|play| play.secrets(number));
                let key_log = key_logs.collect::<Vec<_>>().join("\n");
                let trace = Trace {
                    program,
                    hosts: [hop.from, hop.to],
                    log: &seen.log,
                    key_log: key_log.as_bytes(),
                    ends: plays.iter().map(|play| play.addresses(number)).collect(),
                };
                trace.write(&job.folder.join(trace_name(number, hop)))?;
            }
        }
        for (play, played) in plays.iter().zip(&self.flows) {
            play.leave_files(played)?;
        }
        Ok(())
    }

    /// The flow that is measured.
    fn measured(&self) -> &Played {
        &self.flows[0]
    }
}

impl Played {
    /// When bytes of streams arrived that had not been there before where the files are received, and how many, in order. None if
    /// they cannot be read.
    #[must_use]
    pub fn arrivals(&self, job: &Job, testcase: TestCase) -> Option<Vec<(Time, u64)>> {
        self.sights[job.last_hop(testcase)].arrivals(testcase)
    }
}

/// What the trace of a hop is called: that of the client's nothing but trace.
fn trace_name(number: usize, hop: &Hop) -> String {
    match number {
        0 => "trace.pcapng".to_owned(),
        _ => format!("trace-{}.pcapng", hop.name()),
    }
}

/// 8 · size / transfer, and its share of the rate of the link. None where that says nothing: the files came in one packet, or
/// in one flight so short that the first packet, whose own time on the link is not in `transfer_s`, counts for much.
fn goodput(
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

/// The rate of the link in the direction of the files; of one that changes the mean over the transfer, as it was in this trial. `end` is
/// when the last byte arrived.
fn rate_bps(job: &Job, files: Files, end: Option<Time>, transfer_s: Option<f64>) -> Option<f64> {
    let (scenario, direction) = (&job.scenario, files.testcase.direction());
    let nominal = scenario.rate(direction).map(|rate| float(rate.bps()));
    let span = end.zip(transfer_s);
    let Some((end, transfer)) = span.filter(|_| !scenario.is_steady(direction)) else {
        return nominal;
    };
    let ideal = Ideal::new(scenario, direction, files.seed);
    let could = ideal.bit_nanos(end - nanos(transfer), end)?;
    #[expect(clippy::cast_precision_loss, reason = "for a record")]
    let could = could as f64;
    Some(could / 1e9 / transfer)
}

/// When the last byte of files arrived that were complete so many seconds after the start.
fn last_byte(job: &Job, files: Files, completion_s: f64) -> Time {
    // An upload is complete when the client has the answer, and transferred before that.
    let answer = match files.testcase.direction() {
        Direction::Forward => Span::ZERO,
        Direction::Return => job.scenario.min_one_way(Direction::Forward),
    };
    files.start + nanos(completion_s) - answer
}

/// Seconds as a span, rounded to a nanosecond.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times of a trial are not negative, and far below 2^53 ns"
)]
fn nanos(seconds: f64) -> Span {
    Span::from_nanos((seconds * 1e9).round() as u64)
}

/// Nanoseconds as seconds, for reading; nothing is decided by them any more.
#[expect(clippy::cast_precision_loss, reason = "2^53 ns are 104 days")]
pub fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// What the client reports, where nothing better is known. It does not know when its files arrived, nor when a second handshake
/// was complete.
fn reported(job: &Job, finished: &Finished, start: Time) -> Times {
    let (testcase, played) = (job.measured().testcase, finished.measured());
    let whole = &played.verdict.client;
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
    let course = finished.course.as_ref();
    let reply = course
        .zip(earliest)
        .and_then(|(it, earliest)| it.hops[0].log.first_of_reply(earliest));
    let complete = played.verdict.outcome == Outcome::Ok;
    let times = Times::reported(&client, start, reply, complete);
    if testcase == TestCase::Upload {
        return Times {
            ttfb_s: None,
            transfer_s: None,
            ..times
        };
    }
    times
}

/// The end of a trial with two connections of which the second never began has nothing to measure.
fn times(job: &Job, finished: &Finished, metrics: Option<&Metrics>, start: Option<Time>) -> Times {
    let ok = finished.measured().verdict.outcome == Outcome::Ok;
    match (metrics, start) {
        (Some(metrics), _) => Times::on_wire(metrics, ok),
        (None, Some(start)) => reported(job, finished, start),
        (None, None) => Times::default(),
    }
}

/// Of a transfer that was cut at `end`: its bytes, and the time since the first of them.
fn lasted(job: &Job, played: &Played, end: Time) -> (u64, Option<f64>) {
    let arrivals = played.arrivals(job, job.measured().testcase);
    let (first, bytes) = if let Some(arrivals) = arrivals {
        let arrived = arrivals.iter().take_while(|(at, _)| *at < end);
        let bytes = arrived.map(|(_, bytes)| bytes).sum();
        (arrivals.first().map(|(at, _)| *at), bytes)
    } else {
        let said = &played.verdict.client.requests;
        let first = said.iter().filter_map(|it| it.first_byte_ns).min();
        let bytes = said.iter().map(|it| it.bytes).sum();
        (first.map(Time::from_nanos), bytes)
    };
    (bytes, first.map(|first| (end - first).as_secs_f64()))
}

/// The bytes that were moved, and when the last of them arrived; completes the time that they took where that is not on the client's hop, or is
/// no file's.
fn moved(job: &Job, finished: &Finished, files: Files, times: &mut Times) -> (u64, Option<Time>) {
    let (course, played) = (finished.course.as_ref(), finished.measured());
    if let (None, Some(course)) = (files.size_bytes, course) {
        let end = course.flows[0].end;
        let (bytes, transfer_s) = lasted(job, played, end);
        times.transfer_s = transfer_s;
        return (bytes, Some(end));
    }
    if job.last_hop(files.testcase) > 0 {
        times.transfer_s = transfer_s(job, played, files);
    }
    let end = times.completion_s.map(|s| last_byte(job, files, s));
    (played.measured_bytes, end)
}

/// The curve of what has reached the receiver of the files, with its step, from a time on.
fn received(job: &Job, from: Option<(&Course, Time)>) -> (u64, Vec<u64>) {
    let Some((course, start)) = from else {
        return (0, Vec::new());
    };
    let testcase = job.measured().testcase;
    let log = &course.hops[job.last_hop(testcase)].log;
    log.received(testcase.direction(), start, course.flows[0].end)
}

/// When the connection that is measured began. None: the test case has two, and the second never did.
fn start(testcase: TestCase, measured: Option<&Seen>, flow: Option<&Lifetime>) -> Option<Time> {
    if testcase.has_two_connections() {
        return measured.map(Seen::start);
    }
    Some(flow.and_then(|it| it.first_sent).unwrap_or(Time::ZERO))
}

/// Puts together what was measured.
#[must_use]
pub fn result(job: &Job, finished: &Finished, wall: Duration) -> TrialResult {
    let course = finished.course.as_ref();
    let (flow, played) = (course.map(|it| &it.flows[0]), finished.measured());
    let testcase = job.measured().testcase;
    let here = &played.sights[0];
    let measured = here.measured(testcase);
    let start = start(testcase, measured, flow);
    let lasts = job.measured().duration_ns.is_some();
    let files = Files {
        testcase,
        size_bytes: Some(played.measured_bytes).filter(|_| !lasts),
        seed: job.seed.0,
        start: start.unwrap_or(Time::ZERO),
    };
    let facts = link_facts(job.hops()[0], files);
    let readable = measured.filter(|_| here.has_secrets);
    let (metrics, findings) = readable.map(|seen| on_wire(seen, &facts)).unzip();
    let mut times = times(job, finished, metrics.as_ref(), start);
    let (bytes, end) = moved(job, finished, files, &mut times);
    let sent = metrics.as_ref().map(|it: &Metrics| sent(it, testcase));
    let rate = rate_bps(job, files, end, times.transfer_s);
    let (goodput_bps, efficiency) = goodput(bytes, times.transfer_s, rate);
    let limit_s = facts.limit_s;
    let connections = here.connections();
    let second = connections.as_ref().and_then(|all| all.get(1));
    let satellite = course.map(|it| &it.hops[job.satellite_hop()]);
    let passed = satellite.map(|it| [it.forward, it.back]);
    let (step, received_bytes) = received(job, course.zip(start));
    let (jain_index, flows) = fairness(job, finished, start, step);
    let [client, server] = [0, job.proxies.len() + 1];
    let ready = |program: usize| played.ready.as_ref().map(|ready| &ready[program]);
    let version = |it| ready(it).map(|it| it.version.clone()).unwrap_or_default();
    let driver = |it| ready(it).map(|it| it.driver.clone()).unwrap_or_default();
    let statistics = |host| {
        played
            .verdict
            .statistics
            .get(&host)
            .cloned()
            .unwrap_or_default()
    };
    TrialResult {
        outcome: outcome(finished),
        detail: detail(job, finished),
        alpn: job.measured().alpn.clone(),
        measured_from: if metrics.is_some() { "wire" } else { "client" },
        handshake_s: times.handshake_s,
        ttfb_s: times.ttfb_s,
        completion_s: times.completion_s,
        transfer_s: times.transfer_s,
        goodput_bps,
        efficiency,
        limit_s,
        share_of_limit: limit_s
            .zip(times.completion_s)
            .map(|(limit, completion)| limit / completion),
        connections: connections.as_ref().map(|all| all.len() as u64),
        resumed: second.and_then(|it| it.establishment.resumed),
        zero_rtt_bytes: measured.and_then(|it| it.establishment.zero_rtt_bytes),
        virtual_s: course.map_or(0.0, |it| seconds(it.end.as_nanos())),
        wall_s: wall.as_secs_f64(),
        cpu_client_s: played.remains[client].cpu.as_secs_f64(),
        cpu_server_s: played.remains[server].cpu.as_secs_f64(),
        cpu_sim_s: own_cpu_s(),
        memory_client_bytes: played.remains[client].peak_memory_bytes,
        memory_server_bytes: played.remains[server].peak_memory_bytes,
        epochs: course.map_or(0, |it| it.epochs),
        links: LinkCounts::from(passed.unwrap_or_default()),
        client_version: version(client),
        server_version: version(server),
        client_driver: driver(client),
        server_driver: driver(server),
        retransmitted_share: sent.and_then(|it| it.retransmitted_share),
        acks_per_data_packet: sent.and_then(|it| it.acks_per_data_packet),
        mean_packet_bytes: sent.and_then(|it| it.mean_datagram_bytes),
        largest_packet_bytes: sent.and_then(|it| it.largest_datagram_bytes),
        return_rate_bps: metrics.as_ref().and_then(|it| it.back.mean_rate_bps),
        rtt_min_ms: metrics.as_ref().and_then(|it| it.rtt_min_ms),
        rtt_median_ms: metrics.as_ref().and_then(|it| it.rtt_median_ms),
        rtt_max_ms: metrics.as_ref().and_then(|it| it.rtt_max_ms),
        in_flight_max_bytes: metrics.as_ref().and_then(|it| it.in_flight_max_bytes),
        findings: findings.unwrap_or_default(),
        received_step_s: seconds(step),
        received_bytes,
        jain_index,
        flows,
        proxies: proxies(job, played),
        hops: hops(job, course, played, files),
        client_statistics: statistics(HostName::Client),
        server_statistics: statistics(HostName::Server),
        packet_log_sha256: course.map(Course::sha256),
        fidelity: course.map(|it| it.fidelity.clone()).unwrap_or_default(),
    }
}

/// How long the files of an upload took to the server, which is not on the client's hop.
fn transfer_s(job: &Job, played: &Played, files: Files) -> Option<f64> {
    let (hop, sight) = job.hops().into_iter().zip(&played.sights).next_back()?;
    let seen = sight.busiest().filter(|_| sight.has_secrets)?;
    let complete = played.verdict.outcome == Outcome::Ok;
    let (metrics, _) = on_wire(seen, &link_facts(hop, files));
    metrics.transfer_s.filter(|_| complete)
}

/// Of the way that the files go.
pub fn sent(metrics: &Metrics, testcase: TestCase) -> &OneWay {
    match testcase.direction() {
        Direction::Forward => &metrics.forward,
        Direction::Return => &metrics.back,
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
pub fn float(count: u64) -> f64 {
    count as f64
}
