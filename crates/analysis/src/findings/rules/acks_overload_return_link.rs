//! ACKs fill the link on which they travel.

use super::super::quantities::{Count, Percent, Rate, Seconds, float, share};
use super::super::signals::Signals;
use super::super::span::{Span, at_rate, rate_of};
use super::super::transfer::{Missing, direction};
use super::{Judgement, Rule};
use crate::connection::{Fate, Frame, Nanos};

/// ACKs fill the link on which they travel. Endres, section 5.6.9.1, after Custura et al.: at 250
/// Mbit/s, an ACK for every second packet takes more than a return link of 3 Mbit/s has.
///
/// - Yes: packets with ACKs and no stream data took at least [`FULL_PERCENT`] % of that link over
///   an RTT (and a second at least), or full queues dropped at least [`DROPS_PERCENT`] % of them.
/// - Not sure: the rate of that link is not known, and no such drops were seen.
pub(super) const RULE: Rule = Rule {
    id: "acks_overload_return_link",
    title: "ACKs overload their link",
    judge,
};

/// Above this, queueing delays ACKs by several times their transmission.
const FULL_PERCENT: u64 = 80;
/// A few drops are a burst; one in a hundred lasts.
const DROPS_PERCENT: u64 = 1;
/// Over less than this, one batch of ACKs looks like a load.
const LEAST_WINDOW: Nanos = 1_000_000_000;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_data()?;
    let receiver = signals.transfer.sender.other();
    let connection = signals.transfer.view.connection;
    let all = signals.transfer.view.packets();
    let acks: Vec<_> = all
        .filter(|(packet, entry)| packet.sender == receiver && entry.stream_bytes == 0)
        .map(|(packet, _)| packet)
        .filter(|packet| {
            let mut frames = connection.frames(packet).iter();
            frames.any(|frame| matches!(frame, Frame::Ack { .. }))
        })
        .collect();
    let length = signals.transfer.rtt.unwrap_or(0).max(LEAST_WINDOW);
    let mut sent: Vec<(Nanos, u64)> = acks
        .iter()
        .map(|it| (it.time(), u64::from(it.ip_size.unwrap_or(0))))
        .collect();
    let Some((busiest, bytes)) = busiest(&mut sent, length) else {
        return Ok(Judgement::no("No ACKs were sent.".to_owned()));
    };
    let drops = acks.iter().filter(|it| it.fate == Fate::QueueDrop).count() as u64;
    let is_dropped = drops > 0 && drops * 100 >= acks.len() as u64 * DROPS_PERCENT;
    let (rate, direction) = (signals.transfer.rate_from(receiver), direction(receiver));
    let Some(rate) = rate.or(is_dropped.then_some(0)) else {
        return Missing::because(format!(
            "the rate of the {direction} link is not known (hint: --link); ACKs took {} at most",
            Rate(rate_of(bytes, length))
        ));
    };
    let part = share(bytes, at_rate(rate, length));
    let of_link = match rate {
        0 => String::new(),
        _ => format!(", {} of the {direction} link,", Percent(part)),
    };
    let text = format!(
        "ACKs took up to {}{of_link} in the {} from {} on; full queues dropped {drops} of {}.",
        Rate(rate_of(bytes, length)),
        Seconds(length),
        Seconds(busiest.from),
        Count(acks.len() as u64, "packet"),
    );
    let is_full = rate > 0 && bytes * 100 >= at_rate(rate, length) * FULL_PERCENT;
    let is_overloaded = is_full || is_dropped;
    let judgement = Judgement::yes_if(is_overloaded, text)
        .over(busiest, "rate of ACKs", rate_of(bytes, length), "bit/s")
        .over(
            signals.transfer.sending,
            "packets with ACKs dropped",
            float(drops),
            "packets",
        );
    Ok(if is_overloaded {
        judgement.shown_in("rate", busiest)
    } else {
        judgement
    })
}

/// The window of this length with the most bytes, and these.
fn busiest(sent: &mut [(Nanos, u64)], length: Nanos) -> Option<(Span, u64)> {
    sent.sort_unstable();
    let (mut first, mut sum, mut most) = (0, 0, None);
    for (time, bytes) in sent.iter() {
        sum += bytes;
        while sent[first].0 <= time - length {
            sum -= sent[first].1;
            first += 1;
        }
        if most.is_none_or(|(_, bytes)| sum > bytes) {
            let from = sent[first].0;
            most = Some((
                Span {
                    from,
                    until: from + length,
                },
                sum,
            ));
        }
    }
    most
}
