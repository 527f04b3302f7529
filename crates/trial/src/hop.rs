//! What a record says of hops and proxies.

use bentpipe_analysis::Metrics;
use bentpipe_link::{Counters, Hop};

use crate::course::Course;
use crate::facts::{Files, link_facts};
use crate::job::Job;
use crate::measure::{Played, sent};
use crate::schema::{HopResult, LinkCounts, ProxyResult};
use crate::sight::{Sight, on_wire};

/// The proxies; none where there are none.
pub fn proxies(job: &Job, played: &Played) -> Vec<ProxyResult> {
    let proxies = job.proxies.iter().enumerate();
    let result = |(index, proxy): (usize, &crate::chain::Proxy)| {
        let program = index + 1; // behind the client
        let ready = played.ready.as_ref().map(|ready| &ready[program]);
        let remains = &played.remains[program];
        let statistics = played.verdict.statistics.get(&proxy.place);
        ProxyResult {
            place: proxy.place,
            name: proxy.variant.name.clone(),
            version: ready.map(|it| it.version.clone()).unwrap_or_default(),
            driver: ready.map(|it| it.driver.clone()).unwrap_or_default(),
            cpu_s: remains.cpu.as_secs_f64(),
            memory_bytes: remains.peak_memory_bytes,
            statistics: statistics.cloned().unwrap_or_default(),
        }
    };
    proxies.map(result).collect()
}

/// The hops; none where there are no proxies, and of a trial that did not begin.
pub fn hops(job: &Job, course: Option<&Course>, played: &Played, files: Files) -> Vec<HopResult> {
    let Some(course) = course.filter(|_| !job.proxies.is_empty()) else {
        return Vec::new();
    };
    let seen = job.hops().into_iter().zip(&course.hops).zip(&played.sights);
    seen.map(|((hop, passed), sight)| result(hop, [passed.forward, passed.back], sight, files))
        .collect()
}

fn result(hop: Hop, passed: [Counters; 2], sight: &Sight, files: Files) -> HopResult {
    let readable = sight.busiest().filter(|_| sight.has_secrets);
    let facts = link_facts(hop, files);
    let (metrics, findings) = readable.map(|seen| on_wire(seen, &facts)).unzip();
    let metrics: Option<&Metrics> = metrics.as_ref();
    HopResult {
        from: hop.from,
        to: hop.to,
        links: LinkCounts::from(passed),
        connections: sight.connections().map(|all| all.len() as u64),
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
            forward_packets: forward.packets,
            forward_bytes: forward.bytes,
            forward_queue_drops: forward.queue_drops,
            forward_losses: forward.losses,
            return_packets: back.packets,
            return_bytes: back.bytes,
            return_queue_drops: back.queue_drops,
            return_losses: back.losses,
        }
    }
}
