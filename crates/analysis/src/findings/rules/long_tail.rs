//! The transfer waits for its last packets.

use super::super::quantities::{Percent, Seconds};
use super::super::signals::Signals;
use super::super::span::{Span, percent_of};
use super::super::transfer::Missing;
use super::{Judgement, Rule};
use crate::connection::Nanos;
use crate::durations::seconds;

/// The transfer waits for its last packets. Endres, figure 5.16: losses at the end are found by a
/// timer only, and double the time to completion.
///
/// - Yes: the last [`TAIL_PERCENT`] % of the bytes took more than [`TAIL_RTTS_PERCENT`] % of an
///   RTT, and more than [`SHARE_PERCENT`] % of the time from the first byte to the last.
/// - Not sure: without an RTT; fewer than [`PACKETS`] packets; if the transfer is not whole, or not
///   all of it was seen to arrive.
pub(super) const RULE: Rule = Rule {
    id: "long_tail",
    title: "Long tail",
    judge,
};

const TAIL_PERCENT: u64 = 2;
/// A loss among the last packets costs one RTT if later packets show it; two mean that a timer had
/// to.
const TAIL_RTTS_PERCENT: Nanos = 200;
/// Seven times as long as at the mean rate.
const SHARE_PERCENT: Nanos = 15;
const PACKETS: usize = 50;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_data()?;
    let rtt = signals.transfer.needs_rtt()?;
    if signals.transfer.data.len() < PACKETS {
        return Missing::because(format!(
            "{} packets have no tail of {TAIL_PERCENT} %",
            signals.transfer.data.len()
        ));
    }
    if !signals.transfer.is_whole {
        return Missing::because("the capture ends before the data");
    }
    let deliveries = &signals.deliveries;
    if deliveries.bytes() < signals.retransmissions.distinct {
        return Missing::because("not all data were seen to arrive");
    }
    let most = deliveries.bytes() - deliveries.bytes() * TAIL_PERCENT / 100;
    let (Some(all), Some(from)) = (deliveries.span(), deliveries.when(most)) else {
        return Missing::because("no data were seen to arrive");
    };
    let tail = Span {
        from,
        until: all.until,
    };
    let text = format!(
        "The last {TAIL_PERCENT} % of the bytes took {}, {} of the {} from the first byte to the \
         last.",
        Seconds(tail.length()),
        Percent(seconds(tail.length()) / seconds(all.length()).max(f64::MIN_POSITIVE)),
        Seconds(all.length()),
    );
    let is_long = tail.length() > percent_of(rtt, TAIL_RTTS_PERCENT)
        && tail.length() > percent_of(all.length(), SHARE_PERCENT);
    let judgement = Judgement::yes_if(is_long, text).over(
        tail,
        "time of the last 2 %",
        seconds(tail.length()),
        "s",
    );
    Ok(if is_long {
        judgement.shown_in("offset", tail)
    } else {
        judgement
    })
}
