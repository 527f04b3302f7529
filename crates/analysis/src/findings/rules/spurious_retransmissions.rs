//! Data were sent again though they had arrived.

use super::super::quantities::{Bytes, Count, Percent, Seconds, float, share};
use super::super::signals::Signals;
use super::super::span::Span;
use super::super::transfer::Missing;
use super::{Judgement, Rule};

/// Data were sent again though they had arrived: timers that are too short, or reordering taken for
/// loss. Endres, figure 5.14.
///
/// - Yes: copies of bytes of which an earlier copy arrived are at least [`SHARE_PERCENT`] % of the
///   data, in at least [`PACKETS`] packets. Probes of a probe timeout count too, so a few are in
///   order.
/// - Not sure: only the receiver's side was captured, and fewer such copies arrived: others may
///   have been lost.
pub(super) const RULE: Rule = Rule {
    id: "spurious_retransmissions",
    title: "Sent again though it had arrived",
    judge,
};

/// One byte in a hundred is what a lossy path costs anyway.
const SHARE_PERCENT: u64 = 1;
/// Probe timeouts at the end of a transfer send two packets each (RFC 9002 section 6.2.4).
const PACKETS: u64 = 10;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_data()?;
    let copies = &signals.retransmissions;
    let Some((first, last)) = copies.needless_at else {
        return signals.transfer.needs_sender_side().map(|()| {
            Judgement::no(format!(
                "No data were sent again that had arrived; {} were sent again in all.",
                Bytes(copies.sent - copies.distinct)
            ))
        });
    };
    let span = Span {
        from: first,
        until: last,
    };
    let part = share(copies.needless, copies.distinct);
    let text = format!(
        "From {} on, {} ({} of the data) were sent again in {} though they had arrived.",
        Seconds(first),
        Bytes(copies.needless),
        Percent(part),
        Count(copies.needless_packets, "packet"),
    );
    let is_much = copies.needless_packets >= PACKETS
        && copies.needless * 100 >= copies.distinct * SHARE_PERCENT;
    if !is_much {
        signals.transfer.needs_sender_side()?;
    }
    let judgement = Judgement::yes_if(is_much, text)
        .over(
            span,
            "bytes sent again needlessly",
            float(copies.needless),
            "bytes",
        )
        .over(
            span,
            "packets with them",
            float(copies.needless_packets),
            "packets",
        );
    Ok(if is_much {
        judgement.shown_in("offset", span)
    } else {
        judgement
    })
}
