//! Many packets of one round trip were lost.

use super::super::quantities::{Count, Percent, Seconds, float, share};
use super::super::signals::Signals;
use super::super::span::Span;
use super::super::transfer::{Missing, arrived};
use super::{Judgement, Rule};
use crate::connection::{Fate, Nanos, Vantage};

/// Many packets of one round trip were lost: the price of an overshoot. WPI, figure 1 b; Endres,
/// section 5.6.6.
///
/// - Yes: within one RTT of sending, at least [`STORM_PACKETS`] packets and at least
///   [`STORM_PERCENT`] % of those sent were lost. Chance at 1 % stays below.
/// - Not sure: without the sender's side, for then it is not seen what did not arrive; without
///   secrets, unless both sides were captured.
pub(super) const RULE: Rule = Rule {
    id: "loss_storm",
    title: "Loss storm",
    judge,
};

/// Fewer fit a short burst of losses on the link, or one probe of a small queue.
const STORM_PACKETS: u64 = 20;
/// Losses by chance at 1 %, the highest rate of the published scenarios but one, stay below this.
const STORM_PERCENT: u64 = 5;

/// The fates of the packets in a span.
#[derive(Debug, Clone, Copy, Default)]
struct FateCounts {
    span: Option<Span>,
    packets: u64,
    lost: u64,
    queue_drops: u64,
}

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_data_packets_at_sender()?;
    if signals.transfer.gap.is_sealed() && signals.transfer.view.connection.vantage != Vantage::Both
    {
        return Missing::because(
            "without secrets, losses are seen only where both sides were captured",
        );
    }
    let rtt = signals.transfer.needs_rtt()?;
    let sent: Vec<(Nanos, bool, bool)> = signals
        .transfer
        .sent_in_flight()
        .map(|(packet, entry)| {
            let is_lost = arrived(packet, entry) == Some(false);
            (packet.time(), is_lost, packet.fate == Fate::QueueDrop)
        })
        .collect();
    let worst = worst(&sent, rtt);
    let Some(span) = worst.span else {
        return Ok(Judgement::no(format!(
            "None of {} was lost.",
            Count(sent.len() as u64, "packet")
        )));
    };
    let all = sent.iter().filter(|(_, is_lost, _)| *is_lost).count() as u64;
    let causes = match worst.queue_drops {
        0 => String::new(),
        drops => format!(", {drops} in a full queue"),
    };
    let text = format!(
        "Of the {} sent in the RTT from {} on, {} ({}) were lost{causes}; {all} were lost in the \
         whole transfer.",
        Count(worst.packets, "packet"),
        Seconds(span.from),
        worst.lost,
        Percent(share(worst.lost, worst.packets)),
    );
    let is_storm = is_storm(&worst);
    let judgement = Judgement::yes_if(is_storm, text)
        .over(
            span,
            "packets lost within one RTT",
            float(worst.lost),
            "packets",
        )
        .over(
            span,
            "share of packets lost",
            share(worst.lost, worst.packets) * 100.0,
            "%",
        )
        .over(
            signals.transfer.sending,
            "packets lost in all",
            float(all),
            "packets",
        );
    Ok(if is_storm {
        judgement.shown_in("number", span)
    } else {
        judgement
    })
}

fn is_storm(toll: &FateCounts) -> bool {
    toll.lost >= STORM_PACKETS && toll.lost * 100 >= toll.packets * STORM_PERCENT
}

/// The span of an RTT with the most losses; one that is a storm before one that is none.
fn worst(sent: &[(Nanos, bool, bool)], rtt: Nanos) -> FateCounts {
    let (mut worst, mut now) = (FateCounts::default(), FateCounts::default());
    let mut first = 0;
    for (time, is_lost, is_drop) in sent {
        now.packets += 1;
        now.lost += u64::from(*is_lost);
        now.queue_drops += u64::from(*is_drop);
        while sent[first].0 <= time - rtt {
            now.packets -= 1;
            now.lost -= u64::from(sent[first].1);
            now.queue_drops -= u64::from(sent[first].2);
            first += 1;
        }
        if (is_storm(&now), now.lost) > (is_storm(&worst), worst.lost) {
            worst = now;
            worst.span = Some(Span {
                from: sent[first].0,
                until: *time,
            });
        }
    }
    worst
}
