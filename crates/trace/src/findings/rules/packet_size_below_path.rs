//! Full packets are smaller than the path carries.
//!
//! Names what the packet-size plots show (Endres 2022, section 5.6.9.3): a sender without path MTU discovery (RFC 9000
//! section 14.3) that stays at 1200 or 1280 bytes pays headers, and per-packet costs, for the rest.
//!
//! Rule: the IP packet that most of the sender's data came in is held against the path's MTU. Where that is not known,
//! against the largest IP packet that arrived, of either end: the path carries no less. Yes, if it is more than
//! [`BELOW_PERCENT`] smaller. No, if it is not smaller than the known MTU by as much.
//!
//! Not sure if the MTU is not known, and no larger packet was seen.

use super::super::say::{Percent, float, share};
use super::super::signals::{Missing, Signals, arrived};
use super::{Judgement, Rule};
use crate::quic::Space;

pub(super) const RULE: Rule = Rule {
    id: "packet_size_below_path",
    title: "Packets smaller than the path carries",
    judge,
};

/// Stacks leave some bytes for options and tunnels; 1452 bytes of QUIC in 1500 are 1.3 % below, 1280 are 13 %.
const BELOW_PERCENT: u64 = 5;
/// Fewer full packets than this say little of what discovery would have found.
const ENOUGH: usize = 20;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.needs_data()?;
    let view = signals.view;
    let full: Vec<u32> = signals
        .data
        .iter()
        .map(|at| signals.packet(*at).0)
        .filter(|it| it.size == signals.full_size && it.space() == Some(Space::Application))
        .filter_map(|it| it.ip_size)
        .collect();
    if full.len() < ENOUGH {
        return Missing::because(format!("only {} full packets were sent", full.len()));
    }
    let typical = u64::from(*full.iter().min().expect("there are some"));
    let all = view.connection.packets.iter().zip(view.ledger);
    let carried = all.filter(|(packet, entry)| arrived(packet, entry) == Some(true));
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
        let from = signals.sending;
        judgement
            .over(from, "typical full IP packet", float(typical), "bytes")
            .over(
                from,
                "largest that the path is known to carry",
                float(path),
                "bytes",
            )
    };
    let span = signals.sending;
    if is_below {
        let text = match view.link.mtu_bytes {
            Some(_) => format!(
                "Full IP packets had {typical} bytes, {} less than the {path} that {source}.",
                Percent(below)
            ),
            None => format!(
                "Full IP packets had {typical} bytes, {} less than the one of {path} {source}.",
                Percent(below)
            ),
        };
        return Ok(numbers(Judgement::yes(text)).shown_in("size", span));
    }
    if view.link.mtu_bytes.is_none() {
        return Missing::because(format!(
            "full IP packets had {typical} bytes, none was larger, and the path's MTU is not known"
        ));
    }
    Ok(numbers(Judgement::no(format!(
        "Full IP packets had {typical} bytes of the {path} that the path carries."
    ))))
}
