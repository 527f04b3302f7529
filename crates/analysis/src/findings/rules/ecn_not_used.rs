//! The sender takes no part in ECN, though the path marks.

use bentpipe_wire::quic::End;

use super::super::quantities::{Count, Percent, float, share};
use super::super::signals::Signals;
use super::super::transfer::{Missing, direction};
use super::{Judgement, Rule};
use crate::connection::{Codepoint, Fate, Protocol};

/// The sender set no ECT codepoint, though a queue on the way marks: it drops the sender's packets
/// in place of marking them, or lets them wait. RFC 9000, section 13.4: an endpoint should use ECN.
///
/// - Yes: no packet with data had ECT(0) or ECT(1), and a queue behind the sender marks.
/// - Not sure: without the sender's side; if no packet had one, and it is not known whether a queue
///   marks. It needs no secrets.
pub(super) const RULE: Rule = Rule {
    id: "ecn_not_used",
    title: "ECN not used",
    judge,
};

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    let transfer = &signals.transfer;
    transfer.needs_data_packets_at_sender()?;
    let data = transfer.needs_data_packets()?;
    let packets = || data.iter().map(|at| transfer.packet(*at).0);
    let count = |is: fn(Codepoint) -> bool| {
        let set = packets().filter(|it| it.sent_ecn().is_some_and(is));
        set.count() as u64
    };
    let (all, capable) = (data.len() as u64, count(Codepoint::is_capable));
    if capable > 0 {
        return Ok(Judgement::no(format!(
            "{} of the packets with data had an ECT codepoint.",
            Percent(share(capable, all))
        )));
    }
    let (sender, way) = (transfer.sender, direction(transfer.sender));
    match transfer.marks_from(sender) {
        Some(true) => {}
        Some(false) => {
            return Ok(Judgement::no(format!(
                "No packet had an ECT codepoint, and no queue of the {way} link marks."
            )));
        }
        None => {
            return Missing::because(format!(
                "no packet had an ECT codepoint, and whether a queue of the {way} link marks is \
                 not known (hint: --link)"
            ));
        }
    }
    let drops = packets().filter(|it| it.fate == Fate::QueueDrop).count() as u64;
    let text = format!(
        "None of {} with data had an ECT codepoint, though a queue of the {way} link marks; it \
         dropped {drops} of them.{}",
        Count(all, "packet"),
        why(signals)
    );
    Ok(Judgement::yes(text)
        .over(
            transfer.sending,
            "packets dropped by queues",
            float(drops),
            "packets",
        )
        .shown_in("number", transfer.sending))
}

/// The end of a TCP connection that did not agree on ECN (RFC 3168 section 6.1.1), as a clause.
fn why(signals: &Signals<'_>) -> &'static str {
    let connection = signals.transfer.view.connection;
    if connection.protocol != Protocol::Tcp {
        return "";
    }
    let sets_up = |end: End| {
        let mut own = connection.packets.iter().filter(|it| it.sender == end);
        own.any(|packet| {
            let mut frames = connection.frames(packet).iter();
            frames.any(|it| matches!(it.name(), "ECN_SETUP" | "ACCURATE_ECN_SETUP"))
        })
    };
    match [End::Client, End::Server].map(sets_up) {
        [false, _] => " The client did not ask for ECN in its SYN.",
        [true, false] => " The server did not agree to ECN in its SYN-ACK.",
        [true, true] => "",
    }
}
