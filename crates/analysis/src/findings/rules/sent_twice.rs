//! Nearly every byte was sent at least twice.

use super::super::quantities::{Bytes, Percent, float, share};
use super::super::signals::Signals;
use super::super::transfer::Missing;
use super::{Judgement, Rule};

/// Nearly everything was sent at least twice. Endres, figure 5.17: a server that "retransmits each
/// and every packet right after transmitting it the first time", 80 MiB on the wire for a file of
/// 10 MiB.
///
/// - Yes: at least [`SHARE_PERCENT`] % of the bytes. The text says how many copies left sooner than
///   an RTT after the one before.
/// - Not sure: only the receiver's side was captured, and less arrived twice.
pub(super) const RULE: Rule = Rule {
    id: "sent_twice",
    title: "Everything sent twice",
    judge,
};

/// "Nearly every": no path of the published scenarios loses as much.
const SHARE_PERCENT: u64 = 80;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_data()?;
    let copies = &signals.retransmissions;
    let is_twice = copies.twice * 100 >= copies.distinct * SHARE_PERCENT;
    if !is_twice {
        signals.transfer.needs_sender_side()?;
    }
    let part = share(copies.twice, copies.distinct);
    let text = format!(
        "{} of the data were sent at least twice, {} for {} in all; {} of the packets with copies \
         left sooner than an RTT after the copy before.",
        Percent(part),
        Bytes(copies.sent),
        Bytes(copies.distinct),
        Percent(share(copies.early_packets, copies.packets)),
    );
    let judgement = Judgement::yes_if(is_twice, text)
        .over(
            signals.transfer.sending,
            "share of data sent at least twice",
            part * 100.0,
            "%",
        )
        .over(
            signals.transfer.sending,
            "packets with early copies",
            float(copies.early_packets),
            "packets",
        );
    Ok(if is_twice {
        judgement.shown_in("offset", signals.transfer.sending)
    } else {
        judgement
    })
}
