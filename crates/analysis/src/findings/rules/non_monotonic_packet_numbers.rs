//! Packet numbers that do not increase.

use super::super::quantities::{Count, Seconds, float};
use super::super::signals::Signals;
use super::super::span::Span;
use super::super::transfer::Missing;
use super::{Judgement, Rule};
use crate::connection::{Nanos, Protocol};

/// Packet numbers do not increase. Endres, section 5.6.9.2: a sender that used one number for the
/// whole transfer. RFC 9000, section 12.3.
///
/// - Yes: a packet has a number that is not above all that were sent earlier in its packet number
///   space. Of packets that left at the same nanosecond a capture does not tell the order; these
///   must only differ.
/// - Not sure: without the sender's side; packets that could not be decrypted; TCP.
pub(super) const RULE: Rule = Rule {
    id: "non_monotonic_packet_numbers",
    title: "Packet numbers that do not increase",
    judge,
};

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_sender_side()?;
    if signals.transfer.view.connection.protocol == Protocol::Tcp {
        return Missing::because("TCP has no packet numbers");
    }
    let numbers = signals
        .transfer
        .sent()
        .filter_map(|(packet, _)| Some((packet.space()? as usize, packet.sent()?, packet.number?)));
    let mut numbers: Vec<(usize, Nanos, u64)> = numbers.collect();
    numbers.sort_unstable();
    let numbered = numbers.len() as u64;
    let mut highest: [Option<u64>; 3] = [None; 3];
    let mut wrong = Vec::<(Nanos, u64)>::new();
    for (space, time, number) in numbers {
        if highest[space].is_some_and(|highest| number <= highest) {
            wrong.push((time, number));
        }
        highest[space] = highest[space].max(Some(number));
    }
    wrong.sort_unstable();
    let (Some((time, number)), Some((last, _))) = (wrong.first(), wrong.last()) else {
        return Ok(Judgement::no(format!(
            "The numbers of all {} increase.",
            Count(numbered, "packet")
        )));
    };
    let span = Span {
        from: *time,
        until: *last,
    };
    let text = format!(
        "From {} on, {} of {numbered} had a number that is not above all before; the first was \
         {number}.",
        Seconds(*time),
        Count(wrong.len() as u64, "packet"),
    );
    Ok(Judgement::yes(text)
        .over(
            span,
            "packets with such numbers",
            float(wrong.len() as u64),
            "packets",
        )
        .shown_in("number", span))
}
