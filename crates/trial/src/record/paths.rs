//! The columns of a record on several paths.

use std::collections::HashMap;

use bentpipe_link::{Counters, Direction, Fate};
use bentpipe_units::Time;

use crate::evidence::Packet;
use crate::finished::FinishedTrial;
use crate::job::Job;
use crate::numbers::float;
use crate::schema::PathResult;

/// The paths, by number; none where there is one, and of a trial that did not begin. `start` is
/// that of the flow that is measured.
pub fn paths(job: &Job, finished: &FinishedTrial, start: Option<Time>) -> Vec<PathResult> {
    let names = job.scenario.path_names();
    let observation = finished.observation.as_ref();
    let Some(observation) = observation.filter(|_| names.len() > 1) else {
        return Vec::new();
    };
    // Where there are several, the only hop leads from end to end.
    let packets = observation.hops[0].log.packets();
    let counted = Direction::BOTH.map(|way| count(packets, way, names.len()));
    let sent = counted
        .each_ref()
        .map(|paths| paths.iter().map(|it| it.bytes).sum());
    let mut data = data_times(job, finished, packets);
    // Those of connections before the one that is measured are not its own.
    data.retain(|_, [first, _]| start.is_none_or(|start| *first >= start));
    let since = |time: Time| start.map(|start| (time - start).as_secs_f64());
    let results = names.iter().enumerate().map(|(number, name)| {
        let [forward, back] = counted.each_ref().map(|paths| paths[number]);
        PathResult {
            name: (*name).to_owned(),
            forward_packets: forward.packets,
            forward_bytes: forward.bytes,
            forward_share: share(forward.bytes, sent[0]),
            forward_queue_drops: forward.queue_drops,
            forward_losses: forward.losses,
            return_packets: back.packets,
            return_bytes: back.bytes,
            return_share: share(back.bytes, sent[1]),
            return_queue_drops: back.queue_drops,
            return_losses: back.losses,
            data_first_s: data.get(&number).and_then(|[first, _]| since(*first)),
            data_last_s: data.get(&number).and_then(|[_, last]| since(*last)),
        }
    });
    results.collect()
}

/// The fates of the packets in a direction, by path.
fn count(packets: &[Packet], way: Direction, paths: usize) -> Vec<Counters> {
    let mut counted = vec![Counters::default(); paths];
    for packet in packets.iter().filter(|it| it.direction == way) {
        counted[packet.path].count(packet.fate, packet.ip.bytes);
    }
    counted
}

/// When new bytes of the files first and last arrived over each path that brought some, of the flow
/// that is measured.
///
/// Its packets are told apart by the time of their arrival. Of two that two paths bring at the same
/// nanosecond, one stands for both.
fn data_times(
    job: &Job,
    finished: &FinishedTrial,
    packets: &[Packet],
) -> HashMap<usize, [Time; 2]> {
    let facts = job.measured().testcase_facts;
    let own = packets
        .iter()
        .filter(|it| it.flow == 0 && it.direction == facts.direction());
    let arrived = own.filter_map(|it| match it.fate {
        Fate::Delivered { at } => Some((at, it.path)),
        Fate::QueueDrop | Fate::Loss => None,
    });
    let by_time: HashMap<Time, usize> = arrived.collect();
    let mut found = HashMap::new();
    for (at, _) in finished.measured().arrivals(job, facts).unwrap_or_default() {
        if let Some(&path) = by_time.get(&at) {
            found.entry(path).or_insert([at, at])[1] = at;
        }
    }
    found
}

fn share(bytes: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| float(bytes) / float(of))
}
