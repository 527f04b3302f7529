//! Packet numbers that do not increase.
//!
//! Names Endres 2022, section 5.6.9.2: a sender that used one number for the whole transfer. Source: RFC 9000 section 12.3:
//! numbers must increase within a packet number space, and must not be reused.
//!
//! Rule: of all packets of the data sender, as they were sent, those whose number is not above all before in their space. One
//! is enough.
//!
//! Not sure without the sender's side (the network may have reordered), if packets could not be decrypted, and for TCP.

use super::super::say::{Count, Seconds, float};
use super::super::signals::{Missing, Signals, Span};
use super::{Judgement, Rule};
use crate::connection::{Nanos, Protocol};

pub(super) const RULE: Rule = Rule {
    id: "non_monotonic_packet_numbers",
    title: "Packet numbers that do not increase",
    judge,
};

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.needs_sender_side()?;
    if signals.view.connection.protocol == Protocol::Tcp {
        return Missing::because("TCP has no packet numbers");
    }
    let mut highest: [Option<u64>; 3] = [None; 3];
    let (mut numbered, mut wrong) = (0, Vec::<(Nanos, u64)>::new());
    for (packet, _) in signals.sent() {
        let (Some(time), Some(space), Some(number)) =
            (packet.sent(), packet.space(), packet.number)
        else {
            continue;
        };
        numbered += 1;
        let highest = &mut highest[space as usize];
        if highest.is_some_and(|highest| number <= highest) {
            wrong.push((time, number));
        }
        *highest = (*highest).max(Some(number));
    }
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
        "From {} on, {} of {numbered} had a number that is not above all before; the first was {number}.",
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
