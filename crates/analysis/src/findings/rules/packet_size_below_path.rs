//! Full packets are smaller than the path carries.

use std::collections::BTreeMap;

use super::super::quantities::{Percent, Seconds, float, share};
use super::super::signals::Signals;
use super::super::transfer::{Missing, arrived};
use super::{Judgement, Rule};
use crate::connection::Nanos;
use bentpipe_wire::quic::Space;

/// Full packets are smaller than the path carries: headers, and costs of each packet, take the
/// rest. Endres, section 5.6.9.3; RFC 9000, section 14.3.
///
/// - Yes: the IP packet that most data of the last quarter of the packets came in, when path MTU
///   discovery had come far, is more than [`BELOW_PERCENT`] % smaller than the link's MTU or, where
///   that is not known, than the largest IP packet that arrived at either end.
/// - Not sure: the MTU is not known and no larger packet arrived; fewer than [`ENOUGH`] full
///   packets.
pub(super) const RULE: Rule = Rule {
    id: "packet_size_below_path",
    title: "Packets smaller than the path carries",
    judge,
};

/// Stacks leave some bytes for options and tunnels; 1452 bytes of QUIC in 1500 are 1.3 % below,
/// 1280 are 13 %.
const BELOW_PERCENT: u64 = 5;
/// Fewer full packets than this say little of what discovery would have found.
const ENOUGH: usize = 20;
/// Discovery takes some round trips, and climbs step by step: the last quarter of the packets has
/// what it found.
const PARTS: usize = 4;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    let view = signals.transfer.view;
    let sent = Sizes::of(signals, signals.transfer.needs_data_packets()?);
    let typical = sent.settled;
    if sent.full < ENOUGH {
        return Missing::because(format!("only {} full packets were sent", sent.full));
    }
    let carried = view
        .packets()
        .filter(|(packet, entry)| arrived(packet, entry) == Some(true));
    let largest = carried
        .filter_map(|(packet, _)| packet.ip_size)
        .max()
        .map_or(0, u64::from);
    let (path, source) = match view.link.mtu_bytes {
        Some(mtu) => (mtu, "the path carries"),
        None => (largest, "that arrived was the largest"),
    };
    let is_below = typical * 100 < path * (100 - BELOW_PERCENT);
    let below = 1.0 - share(typical, path);
    let numbers = |judgement: Judgement| {
        let from = signals.transfer.sending;
        judgement
            .over(from, "typical full IP packet", float(typical), "bytes")
            .over(
                from,
                "largest that the path is known to carry",
                float(path),
                "bytes",
            )
    };
    let span = signals.transfer.sending;
    let grew = sent.grew();
    if is_below {
        let path = match view.link.mtu_bytes {
            Some(_) => format!("the {path} that {source}"),
            None => format!("the one of {path} {source}"),
        };
        let text = format!("{grew}, {} less than {path}.", Percent(below));
        return Ok(numbers(Judgement::yes(text)).shown_in("size", span));
    }
    if view.link.mtu_bytes.is_none() {
        return Missing::because(format!(
            "full IP packets had {typical} bytes in the end, none was larger, and the path's MTU \
             is not known"
        ));
    }
    Ok(numbers(Judgement::no(format!(
        "{grew}; the path carries {path}."
    ))))
}

/// The sizes of IP packets that most of the sender's data came in.
struct Sizes {
    /// In the first quarter of its packets.
    first: u64,
    /// In the last quarter.
    settled: u64,
    /// When the first packet that large was sent.
    since: Nanos,
    /// Packets of the last quarter that large.
    full: usize,
}

impl Sizes {
    fn of(signals: &Signals<'_>, packets: &[usize]) -> Self {
        let data = packets.iter().map(|at| signals.transfer.packet(*at).0);
        let data = data.filter(|it| it.space() == Some(Space::Application));
        let all: Vec<(Nanos, u64)> = data
            .filter_map(|it| Some((it.time(), u64::from(it.ip_size?))))
            .collect();
        let quarter = (all.len() / PARTS).max(2 * ENOUGH).min(all.len());
        let last = &all[all.len() - quarter..];
        let settled = usual(last);
        let reached = all.iter().find(|(_, size)| *size >= settled);
        Self {
            first: usual(&all[..quarter]),
            settled,
            since: reached.map_or(0, |(time, _)| *time),
            full: last.iter().filter(|(_, size)| *size == settled).count(),
        }
    }

    fn grew(&self) -> String {
        let Self { first, settled, .. } = self;
        if first < settled {
            let since = Seconds(self.since);
            format!("Full IP packets rose from {first} to {settled} bytes at {since}")
        } else {
            format!("Full IP packets had {settled} bytes")
        }
    }
}

/// The size that most bytes were sent in; of two, the larger.
fn usual(packets: &[(Nanos, u64)]) -> u64 {
    let mut bytes = BTreeMap::<u64, u64>::new();
    for (_, size) in packets {
        *bytes.entry(*size).or_default() += size;
    }
    let most = bytes.into_iter().max_by_key(|(size, sum)| (*sum, *size));
    most.map_or(0, |(size, _)| size)
}
