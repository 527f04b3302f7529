//! New data were skipped first and sent later.

use std::collections::HashMap;

use super::super::quantities::{Bytes, Count, Percent, Seconds, float, share};
use super::super::signals::Signals;
use super::super::span::Span;
use super::super::transfer::Missing;
use super::{Judgement, Rule};
use crate::connection::{Frame, Nanos};

/// New data were skipped first and sent later, which fragments the receiver's buffers and its ACK
/// ranges. Endres, figures 5.14 and 5.15.
///
/// - Yes: at least [`SHARE_PERCENT`] % of the data, in at least [`PACKETS`] packets, were sent for
///   the first time below the highest offset of their stream.
/// - Not sure: without the sender's side; the network may have reordered.
pub(super) const RULE: Rule = Rule {
    id: "sent_out_of_order",
    title: "New data sent out of order",
    judge,
};

/// Less fragments little.
const SHARE_PERCENT: u64 = 1;
/// A retransmission that takes some new bytes along does not count as a pattern.
const PACKETS: u64 = 10;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_sender_side()?;
    let mut highest: HashMap<u64, u64> = HashMap::new();
    let (mut bytes, mut times) = (0, Vec::<Nanos>::new());
    let mut order: Vec<(Nanos, Option<u64>, usize)> = signals
        .transfer
        .data
        .iter()
        .map(|at| (signals.transfer.packet(*at).0, *at))
        .map(|(packet, at)| (packet.time(), packet.number, at))
        .collect();
    // Of packets that left at the same nanosecond, the one with the lower number left first.
    order.sort_unstable();
    for (_, _, at) in order {
        let (packet, entry) = signals.transfer.packet(at);
        let mut is_below = true;
        for frame in signals.transfer.view.connection.frames(packet) {
            if let Frame::Stream {
                id, offset, length, ..
            } = frame
            {
                let end = offset + u64::from(*length);
                let highest = highest.entry(*id).or_default();
                is_below &= end < *highest;
                *highest = end.max(*highest);
            }
        }
        let new = entry.stream_bytes - entry.retransmitted;
        if is_below && new > 0 {
            bytes += u64::from(new);
            times.push(packet.time());
        }
    }
    let distinct = signals.retransmissions.distinct;
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Ok(Judgement::no(
            "All new data were sent in the order of their offsets.".to_owned(),
        ));
    };
    let span = Span {
        from: *first,
        until: *last,
    };
    let packets = times.len() as u64;
    let text = format!(
        "From {} on, {} of new data ({}) were sent in {} behind data of higher offsets.",
        Seconds(*first),
        Bytes(bytes),
        Percent(share(bytes, distinct)),
        Count(packets, "packet"),
    );
    let is_much = packets >= PACKETS && bytes * 100 >= distinct * SHARE_PERCENT;
    let judgement = Judgement::yes_if(is_much, text).over(
        span,
        "new bytes out of order",
        float(bytes),
        "bytes",
    );
    Ok(if is_much {
        judgement.shown_in("offset", span)
    } else {
        judgement
    })
}
