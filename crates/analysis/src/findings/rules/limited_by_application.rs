//! The data sender's application did not keep up.

use super::super::quantities::{Count, Percent, Seconds, float};
use super::super::signals::Signals;
use super::super::transfer::Missing;
use super::{Judgement, Rule};
use crate::durations::seconds;

/// The sender had nothing to send. Endres, section 5.6.2: an ideal server sends "without
/// interruption until the last packet". RFC 9002, section 7.8.
///
/// - Yes: pauses behind a packet that was not full (less than 90 % of the usual size) took at least
///   [`SHARE_PERCENT`] % of the time, and an RTT in all.
/// - Not sure: without the sender's side; if pauses took as long, but behind full packets. A timer,
///   or a model-based controller that drains its path, looks the same.
pub(super) const RULE: Rule = Rule {
    id: "limited_by_application",
    title: "Limited by the application",
    judge,
};

/// As for flow control: less costs less than the spread between two seeds.
const SHARE_PERCENT: i64 = 5;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_sender_side()?;
    let rtt = signals.transfer.needs_rtt()?;
    let sending = signals.transfer.sending;
    let pauses = &signals.pauses;
    let length = |dry_only: bool| -> i64 {
        let counted = pauses.iter().filter(|it| it.ran_dry || !dry_only);
        counted.map(|it| it.span.length()).sum()
    };
    let (all, dry) = (length(false), length(true));
    let matters = |time: i64| time >= rtt && time * 100 >= sending.length() * SHARE_PERCENT;
    let part = seconds(all) / seconds(sending.length()).max(f64::MIN_POSITIVE);
    let Some(first) = pauses.first() else {
        return Ok(Judgement::no(
            "The sender never paused with room in its window and credit left.".to_owned(),
        ));
    };
    let seen = format!(
        "From {} on, the sender paused {} with room in its window and credit left, for {} in all, \
         {} of the time",
        Seconds(first.span.from),
        Count(pauses.len() as u64, "time"),
        Seconds(all),
        Percent(part),
    );
    let judgement = if matters(dry) {
        let dry = Seconds(dry);
        Judgement::yes(format!(
            "{seen}; {dry} of it came after a packet that was not full: it had no more data."
        ))
        .shown_in("offset", first.span)
    } else if matters(all) {
        Judgement::not_sure(format!(
            "{seen}, but after full packets: a timer, or a smaller window, may be why."
        ))
        .shown_in("offset", first.span)
    } else {
        Judgement::no(format!("{seen}."))
    };
    let longest = pauses
        .iter()
        .max_by_key(|it| it.span.length())
        .unwrap_or(first);
    Ok(judgement
        .over(sending, "pauses", float(pauses.len() as u64), "pauses")
        .over(
            longest.span,
            "longest pause",
            seconds(longest.span.length()),
            "s",
        ))
}
