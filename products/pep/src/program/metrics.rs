//! The program's metrics: its proxies, and what of datagrams only the program knows.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use bentpipe_pep::Statistics;
use bentpipe_service::metrics::{Metric, WORKER_TIMEOUT, counter};

use super::worker::{Inbox, Message, Shared, WorkerCounters};

/// The program's metrics beside those of its proxies.
const PROGRAM: [Metric; 3] = [
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
pub fn count(shared: &Arc<Shared>) -> Option<Vec<(Metric, u64)>> {
    let ask = |inbox: &Inbox| {
        let (answer, wait) = sync_channel(1);
        inbox.send(Message::Count(answer));
        wait
    };
    let waits: Vec<_> = shared.inboxes.iter().map(ask).collect();
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
