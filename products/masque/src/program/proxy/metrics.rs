//! The program's metrics: its proxies, and what of requests and datagrams only the program knows.

use std::sync::mpsc::sync_channel;

use bentpipe_masque::{Pool, Statistics};
use bentpipe_service::metrics::{Metric, WORKER_TIMEOUT, counter, gauge};

use super::inbox::{Inbox, Message, WorkerCounters};

/// The program's metrics beside those of its proxies.
const PROGRAM: [Metric; 13] = [
    counter(
        "not_allowed_requests_total",
        "Requests for targets that are not allowed.",
    ),
    counter(
        "unresolved_requests_total",
        "Requests for names without an address.",
    ),
    counter(
        "too_many_names_requests_total",
        "Requests that were refused since too many names were looked up.",
    ),
    counter(
        "exhausted_requests_total",
        "Requests for IP that were refused since no address was left.",
    ),
    counter(
        "not_allowed_packets_total",
        "IP packets of clients to targets that are not allowed.",
    ),
    counter(
        "unsent_packets_total",
        "IP packets that the TUN device did not take.",
    ),
    counter("icmp_errors_total", "Errors of ICMP that were sent."),
    counter(
        "withheld_icmp_errors_total",
        "Errors of ICMP that were not sent since there had been too many.",
    ),
    gauge("assigned_addresses", "Addresses of IP that clients have."),
    counter(
        "unsent_datagrams_total",
        "UDP payloads that no socket took.",
    ),
    counter("socket_errors_total", "Errors of sockets."),
    counter(
        "steered_datagrams_total",
        "Datagrams that came to the wrong worker and were handed on.",
    ),
    counter(
        "steered_datagrams_lost_total",
        "Datagrams that came to the wrong worker and were lost because the right one was too busy.",
    ),
];

/// Asks all workers; the sums.
pub fn count(inboxes: &[Inbox], pool: Option<&Pool>) -> Option<Vec<(Metric, u64)>> {
    let ask = |inbox: &Inbox| {
        let (answer, wait) = sync_channel(1);
        inbox.send(Message::Count(answer));
        wait
    };
    let waits: Vec<_> = inboxes.iter().map(ask).collect();
    let answers = waits
        .into_iter()
        .map(|wait| wait.recv_timeout(WORKER_TIMEOUT).ok());
    let counted: Vec<WorkerCounters> = answers.collect::<Option<_>>()?;
    let mut statistics = Statistics::default();
    for worker in &counted {
        statistics += &worker.statistics;
    }
    let of = |field: fn(&WorkerCounters) -> u64| counted.iter().map(field).sum::<u64>();
    let own = [
        of(|it| it.not_allowed),
        of(|it| it.unresolved),
        of(|it| it.too_many_names),
        of(|it| it.exhausted),
        of(|it| it.not_allowed_packets),
        of(|it| it.unsent_packets),
        of(|it| it.errors.told),
        of(|it| it.errors.withheld),
        pool.map_or(0, |it| it.count() as u64),
        of(|it| it.unsent),
        of(|it| it.socket_errors),
        of(|it| it.handed_on),
        of(|it| it.lost),
    ];
    Some(
        statistics
            .entries()
            .chain(PROGRAM.into_iter().zip(own))
            .collect(),
    )
}
