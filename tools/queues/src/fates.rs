//! The fates of packets on two sides, and how far the sides agree.

use serde_json::{Value, json};

use crate::traffic::Packet;

/// The end of a packet's time in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its transmission starts at that nanosecond.
    Sent {
        /// When.
        at: u64,
        /// Whether it carries a mark of Congestion Experienced.
        is_marked: bool,
    },
    /// The queue drops it.
    Dropped,
}

impl End {
    fn sent_at(self) -> Option<u64> {
        match self {
            Self::Sent { at, .. } => Some(at),
            Self::Dropped => None,
        }
    }

    fn is_marked(self) -> bool {
        matches!(self, Self::Sent { is_marked, .. } if is_marked)
    }

    /// Whether the discipline spared it.
    fn is_plain(self) -> bool {
        matches!(self, Self::Sent { is_marked, .. } if !is_marked)
    }
}

/// How long a link takes to send a packet; rates are such that this is a whole number.
pub fn transmission_ns(bytes: u32, rate: u64) -> u64 {
    u64::from(bytes) * 8 * 1_000_000_000 / rate
}

/// How far two sides agree, as JSON.
pub fn compare(packets: &[Packet], ours: &[End], linux: &[End]) -> Value {
    let count = |ends: &[End], is: fn(End) -> bool| ends.iter().filter(|it| is(**it)).count();
    let dropped = |it: End| it == End::Dropped;
    let same = ours.iter().zip(linux);
    let same = same.filter(|(one, other)| {
        (one.sent_at().is_some(), one.is_marked()) == (other.sent_at().is_some(), other.is_marked())
    });
    let apart = starts_apart(ours, linux);
    let acts = acts_apart(packets, ours, linux);
    json!({
        "packets": packets.len(),
        "dropped": {"ours": count(ours, dropped), "linux": count(linux, dropped)},
        "marked": {"ours": count(ours, End::is_marked), "linux": count(linux, End::is_marked)},
        "same_fate": same.count(),
        "first_other_fate": first_difference(packets, ours, linux),
        "start_apart_ns": quantiles(apart),
        "act_apart_ns": quantiles(acts),
        "mean_wait_ns": {"ours": mean_wait(packets, ours), "linux": mean_wait(packets, linux)},
    })
}

/// When the first packet arrives that meets another fate on one side, in ns since the first one.
fn first_difference(packets: &[Packet], ours: &[End], linux: &[End]) -> Option<u64> {
    let kind = |it: End| (it.sent_at().is_some(), it.is_marked());
    let place = (0..ours.len()).find(|it| kind(ours[*it]) != kind(linux[*it]))?;
    Some(packets[place].at - packets[0].at)
}

/// How far apart the starts are of those that both sides send.
fn starts_apart(ours: &[End], linux: &[End]) -> Vec<u64> {
    let both = ours.iter().zip(linux);
    both.filter_map(|(one, other)| Some(one.sent_at()?.abs_diff(other.sent_at()?)))
        .collect()
}

/// How far apart the n-th packets that are dropped or marked arrived, on both sides, for each n.
fn acts_apart(packets: &[Packet], ours: &[End], linux: &[End]) -> Vec<u64> {
    let acts = |ends: &[End]| -> Vec<u64> {
        let acted = packets.iter().zip(ends).filter(|(_, end)| !end.is_plain());
        acted.map(|(packet, _)| packet.at).collect()
    };
    let (ours, linux) = (acts(ours), acts(linux));
    ours.iter()
        .zip(&linux)
        .map(|(one, other)| one.abs_diff(*other))
        .collect()
}

/// Median, 99th percentile and maximum; null where there is nothing.
fn quantiles(mut values: Vec<u64>) -> Value {
    values.sort_unstable();
    let at = |percent: usize| values.get((values.len().max(1) - 1) * percent / 100);
    json!({"count": values.len(), "p50": at(50), "p99": at(99), "max": at(100)})
}

fn mean_wait(packets: &[Packet], ends: &[End]) -> u64 {
    let sent = packets.iter().zip(ends);
    let waits: Vec<u64> = sent
        .filter_map(|(packet, end)| Some(end.sent_at()? - packet.at))
        .collect();
    waits.iter().sum::<u64>() / u64::try_from(waits.len().max(1)).expect("a number of packets")
}
