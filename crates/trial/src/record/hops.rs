//! The columns of a record on hops and proxies.

use bentpipe_analysis::metrics::OneWay;
use bentpipe_analysis::{LinkFacts, Metrics};
use bentpipe_link::{CapacityRequests, Counters, Direction, Hop};
use bentpipe_units::Span;

use super::link_facts::{MeasuredFiles, link_facts};
use crate::evidence::{HopObservation, TestbedObservation, link_events, on_wire};
use crate::finished::FinishedFlow;
use crate::job::{Job, ProxyJob, TestCaseFacts};
use crate::schema::{HopResult, LinkCounts, ProxyResult};

/// The proxies; none where there are none.
pub fn proxies(job: &Job, flow: &FinishedFlow) -> Vec<ProxyResult> {
    let proxies = job.proxies.iter().enumerate();
    let result = |(index, proxy): (usize, &ProxyJob)| {
        let program = index + 1; // behind the client
        let ready = flow.ready.as_ref().map(|ready| &ready[program]);
        let exit = &flow.exits[program];
        ProxyResult {
            place: proxy.place,
            mtu_bytes: proxy.mtu_bytes,
            name: proxy.variant.name.clone(),
            version: ready.map(|it| it.version.clone()).unwrap_or_default(),
            driver: ready.map(|it| it.driver.clone()).unwrap_or_default(),
            cpu_s: exit.cpu.as_secs_f64(),
            memory_bytes: exit.peak_memory_bytes,
            statistics: flow.verdict.statistics_of(proxy.place),
        }
    };
    proxies.map(result).collect()
}

/// The hops; none where there is only one, and of a trial that did not begin.
pub fn hops(
    job: &Job,
    observation: Option<&TestbedObservation>,
    flow: &FinishedFlow,
    files: MeasuredFiles,
) -> Vec<HopResult> {
    let hops = job.link_hops();
    let Some(observation) = observation.filter(|_| hops.len() > 1) else {
        return Vec::new();
    };
    let passed = hops.into_iter().zip(observation.on_links());
    if job.encapsulates() {
        return passed.map(|(hop, passed)| unread(hop, &passed)).collect();
    }
    let seen = passed.zip(&flow.hops);
    let results = seen.map(|((hop, passed), observed)| {
        let mut facts = link_facts(hop, files);
        facts.events = link_events(job, hop, observation);
        result(hop, &passed, observed, files, &facts)
    });
    results.collect()
}

/// A hop that carries the flow encapsulated: nothing is known of the flow there.
fn unread(hop: Hop, passed: &[Counters; 2]) -> HopResult {
    HopResult {
        from: hop.from,
        to: hop.to,
        links: LinkCounts::from(*passed),
        connections: None,
        rtt_min_ms: None,
        rtt_median_ms: None,
        retransmitted_share: None,
        findings: Vec::new(),
    }
}

fn result(
    hop: Hop,
    passed: &[Counters; 2],
    observed: &HopObservation,
    files: MeasuredFiles,
    facts: &LinkFacts,
) -> HopResult {
    let all = observed.of_hop(files.testcase);
    let seen = observed
        .can_read(&all)
        .then(|| on_wire(&all, facts))
        .flatten();
    let (metrics, findings) = seen.unzip();
    let metrics: Option<&Metrics> = metrics.as_ref();
    HopResult {
        from: hop.from,
        to: hop.to,
        links: LinkCounts::from(*passed),
        connections: observed.completed().map(|all| all.len() as u64),
        rtt_min_ms: metrics.and_then(|it| it.rtt_min_ms),
        rtt_median_ms: metrics.and_then(|it| it.rtt_median_ms),
        retransmitted_share: metrics.and_then(|it| sent(it, files.testcase).retransmitted_share),
        findings: findings.unwrap_or_default(),
    }
}

/// Towards the client, and towards the server.
impl From<[Counters; 2]> for LinkCounts {
    fn from([forward, back]: [Counters; 2]) -> Self {
        Self {
            forward_packets: Some(forward.packets),
            forward_bytes: Some(forward.bytes),
            forward_queue_drops: Some(forward.queue_drops),
            forward_marked: Some(forward.marked),
            forward_reordered: Some(forward.reordered),
            forward_reorder_extent: Some(forward.reorder_extent),
            forward_reorder_extent_mean: reorder_extent_mean(forward),
            forward_duplicated: Some(forward.duplicated),
            forward_losses: Some(forward.losses),
            forward_source_packets: forward.sources.map(|it| it.packets),
            forward_source_bytes: forward.sources.map(|it| it.bytes),
            forward_source_delivered_bytes: forward.sources.map(|it| it.delivered_bytes),
            forward_source_lost: forward.sources.map(|it| it.lost),
            return_packets: Some(back.packets),
            return_bytes: Some(back.bytes),
            return_queue_drops: Some(back.queue_drops),
            return_marked: Some(back.marked),
            return_reordered: Some(back.reordered),
            return_reorder_extent: Some(back.reorder_extent),
            return_reorder_extent_mean: reorder_extent_mean(back),
            return_duplicated: Some(back.duplicated),
            return_losses: Some(back.losses),
            return_source_packets: back.sources.map(|it| it.packets),
            return_source_bytes: back.sources.map(|it| it.bytes),
            return_source_delivered_bytes: back.sources.map(|it| it.delivered_bytes),
            return_source_lost: back.sources.map(|it| it.lost),
            return_capacity_requests: back.requests.map(|it| it.sent),
            return_capacity_requests_lost: back.requests.map(|it| it.lost),
            return_capacity_requests_denied: back.requests.map(|it| it.denied),
            return_capacity_requests_collided: back.requests.map(|it| it.collided),
            return_grant_wait_mean_ms: back.requests.and_then(CapacityRequests::mean_wait).map(ms),
            return_grant_wait_max_ms: back
                .requests
                .and_then(CapacityRequests::longest_wait)
                .map(ms),
        }
    }
}

fn ms(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

/// The mean extent of reordered packets; None if none is.
#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn reorder_extent_mean(counters: Counters) -> Option<f64> {
    let packets = counters.reordered;
    (packets > 0).then(|| counters.reorder_extents as f64 / packets as f64)
}

/// The one-way measures of the way that the files go.
pub fn sent(metrics: &Metrics, testcase: TestCaseFacts) -> &OneWay {
    match testcase.direction() {
        Direction::Forward => &metrics.forward,
        Direction::Return => &metrics.back,
    }
}
