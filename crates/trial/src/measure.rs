//! The measures of a record (definitions: ARCHITECTURE.md, "Records"). Where the test case has two connections, they are of
//! the second.

use std::error::Error;
use std::fs;
use std::time::Duration;

use bentpipe_endpoint::contract::{Bye, Ready};
use bentpipe_link::{Direction, Ideal};
use bentpipe_trace::findings::{self, Findings, View};
use bentpipe_trace::metrics::{OneWay, arrivals};
use bentpipe_trace::{LinkFacts, Metrics};
use bentpipe_units::{Span, Time};

use crate::course::{Course, Lifetime};
use crate::facts::{Files, link_facts};
use crate::fairness::{detail, fairness, outcome};
use crate::job::{Job, Outcome, TrialResult};
use crate::play::Play;
use crate::remains::Remains;
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
    /// Of the client and the server, here and below.
    pub remains: [Remains; 2],
    /// What they answered to HELLO.
    pub ready: Option<[Ready; 2]>,
    /// The connections that could be made out.
    pub wire: Vec<Seen>,
    /// Whether their streams can be read.
    pub has_secrets: bool,
}

impl Finished {
    /// Looks at what arrived and at what was on the wire, which decide what became of each flow. Nothing to look at is there if
    /// the programs did not get past the greeting.
    pub fn examine(&mut self, plays: &[Play]) -> Result<(), Box<dyn Error>> {
        if let Some(course) = &self.course {
            for (play, played) in plays.iter().zip(&mut self.flows) {
                play.examine(played, &course.log)?;
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
            let key_logs: Vec<String> = plays.iter().map(Play::secrets).collect();
            let key_log = key_logs.join("\n");
            let trace = Trace {
                program,
                log: &course.log,
                key_log: key_log.as_bytes(),
                ends: plays.iter().map(Play::addresses).collect(),
            };
            trace.write(&job.folder.join("trace.pcapng"))?;
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
    /// Whether a handshake was completed.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.wire.iter().any(|it| it.establishment.complete)
    }

    /// The connections that completed a handshake; None if there is none at all, complete or not.
    fn connections(&self) -> Option<Vec<&Seen>> {
        let complete = self.wire.iter().filter(|it| it.establishment.complete);
        (!self.wire.is_empty()).then(|| complete.collect())
    }

    /// The connection that is measured: the second, where the test case has two; else the one with most packets.
    fn measured(&self, testcase: TestCase) -> Option<&Seen> {
        if testcase.has_two_connections() {
            return self.connections()?.get(1).copied();
        }
        self.wire
            .iter()
            .max_by_key(|it| it.connection.packets.len())
    }

    /// When bytes of streams arrived that had not been there before, and how many, in order. None if they cannot be read.
    #[must_use]
    pub fn arrivals(&self, testcase: TestCase) -> Option<Vec<(Time, u64)>> {
        if !self.has_secrets {
            return None;
        }
        let of = |seen: &Seen| {
            let start = seen.start().as_nanos().cast_signed();
            let arrivals = arrivals(&seen.connection, testcase.sending_end()).into_iter();
            arrivals.map(move |(at, bytes)| (Time::from_nanos((start + at).cast_unsigned()), bytes))
        };
        let mut all: Vec<(Time, u64)> = self.wire.iter().flat_map(of).collect();
        all.sort_by_key(|(at, _)| *at);
        Some(all)
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
    let round_trip = job.scenario.rtt();
    let earliest = client
        .handshake_ns
        .map(|at| Time::from_nanos(at) + round_trip);
    let course = finished.course.as_ref();
    let reply = course
        .zip(earliest)
        .and_then(|(it, earliest)| it.log.first_of_reply(earliest));
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

/// What was on the wire, in numbers, and the rules that found something wrong with it.
fn on_wire(seen: &Seen, facts: &LinkFacts) -> (Metrics, Vec<&'static str>) {
    let (connection, entries) = (&seen.connection, &seen.entries);
    let found = Findings::of(&View {
        connection,
        ledger: entries,
        link: facts,
        windows: [None, None],
    });
    let wrong = found
        .all
        .into_iter()
        .filter(|finding| finding.verdict == findings::Verdict::Yes);
    let metrics = Metrics::of(connection, entries, facts);
    (metrics, wrong.map(|finding| finding.rule).collect())
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
fn lasted(played: &Played, testcase: TestCase, end: Time) -> (u64, Option<f64>) {
    let (first, bytes) = if let Some(arrivals) = played.arrivals(testcase) {
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
    let measured = played.measured(testcase);
    let start = start(testcase, measured, flow);
    let lasts = job.measured().duration_ns.is_some();
    let files = Files {
        testcase,
        size_bytes: Some(played.measured_bytes).filter(|_| !lasts),
        seed: job.seed.0,
        start: start.unwrap_or(Time::ZERO),
    };
    let facts = link_facts(&job.scenario, files);
    let readable = measured.filter(|_| played.has_secrets);
    let (metrics, findings) = readable.map(|seen| on_wire(seen, &facts)).unzip();
    let mut times = times(job, finished, metrics.as_ref(), start);
    let mut bytes = played.measured_bytes;
    let mut end = times.completion_s.map(|s| last_byte(job, files, s));
    if let (true, Some(flow)) = (lasts, flow) {
        (bytes, times.transfer_s) = lasted(played, testcase, flow.end);
        end = Some(flow.end);
    }
    let sent = metrics.as_ref().map(|it: &Metrics| sent(it, testcase));
    let rate = rate_bps(job, files, end, times.transfer_s);
    let (goodput_bps, efficiency) = goodput(bytes, times.transfer_s, rate);
    let limit_s = facts.limit_s;
    let connections = played.connections();
    let second = connections.as_ref().and_then(|all| all.get(1));
    let forward = course.map(|it| it.forward).unwrap_or_default();
    let back = course.map(|it| it.back).unwrap_or_default();
    let (step, received_bytes) = course
        .zip(start)
        .map(|(it, start)| {
            let end = it.flows[0].end;
            it.log.received(testcase.direction(), start, end)
        })
        .unwrap_or_default();
    let (jain_index, flows) = fairness(job, finished, start, step);
    let ready = |side: usize| played.ready.as_ref().map(|ready| &ready[side]);
    let version = |side| ready(side).map(|it| it.version.clone()).unwrap_or_default();
    let driver = |side| ready(side).map(|it| it.driver.clone()).unwrap_or_default();
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
        cpu_client_s: played.remains[0].cpu.as_secs_f64(),
        cpu_server_s: played.remains[1].cpu.as_secs_f64(),
        cpu_sim_s: own_cpu_s(),
        memory_client_bytes: played.remains[0].peak_memory_bytes,
        memory_server_bytes: played.remains[1].peak_memory_bytes,
        epochs: course.map_or(0, |it| it.epochs),
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
        client_statistics: played.verdict.statistics[0].clone(),
        server_statistics: played.verdict.statistics[1].clone(),
        packet_log_sha256: course.map(|it| it.log.sha256()),
        fidelity: course.map(|it| it.fidelity.clone()).unwrap_or_default(),
    }
}

/// Of the way that the files go.
fn sent(metrics: &Metrics, testcase: TestCase) -> &OneWay {
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
