//! The sender set ECT codepoints at first, and then no longer.

use super::super::quantities::{Count, Seconds, float};
use super::super::signals::Signals;
use super::super::span::Span;
use super::super::transfer::Missing;
use super::{Judgement, Rule};
use crate::connection::{Codepoint, Nanos, Packet, Protocol};
use crate::ledger::LedgerEntry;

/// The sender set ECT codepoints at first, and then no longer: validation failed. RFC 9000, section
/// 13.4.2.1: it fails if ACKs of such packets come without ECN counts, or with smaller ones.
///
/// - Yes: at least [`LEAST_PACKETS`] packets of the application's packet number space left without
///   ECT after the last packet with ECT had been acknowledged or lost. While it waits for that, a
///   sender may stop without having given up.
/// - Not sure: without the sender's side; without secrets.
pub(super) const RULE: Rule = Rule {
    id: "ecn_given_up",
    title: "ECN given up",
    judge,
};

/// Stacks send a few packets while they wait for the answer to the first that had ECT.
const LEAST_PACKETS: u64 = 10;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    let transfer = &signals.transfer;
    transfer.needs_sender_side()?;
    if transfer.view.connection.protocol == Protocol::Tcp {
        let why = "TCP agrees on ECN in its handshake, and does not test it later.";
        return Ok(Judgement::no(why.to_owned()));
    }
    let sent: Vec<_> = transfer.sent_in_flight().collect();
    let is_capable =
        |it: &(&Packet, &LedgerEntry)| it.0.sent_ecn().is_some_and(Codepoint::is_capable);
    let Some(last) = sent.iter().rposition(is_capable) else {
        return Ok(Judgement::no("No packet had an ECT codepoint.".to_owned()));
    };
    let capable = sent[..=last].iter().filter(|it| is_capable(it));
    let (settled, ended) = (settled(sent[last].1), sent[last].0.time());
    let later = sent[last + 1..].iter().filter(|(packet, _)| {
        let is_later = settled.is_some_and(|at| packet.time() > at);
        is_later && packet.sent_ecn().is_some()
    });
    let (later, capable) = (later.count() as u64, capable.count() as u64);
    if later < LEAST_PACKETS {
        return Ok(Judgement::no(format!(
            "The last packet with an ECT codepoint left at {}, and {} without after it was \
             acknowledged or lost.",
            Seconds(ended),
            Count(later, "packet"),
        )));
    }
    let text = format!(
        "After {} with ECT codepoints, the last at {}, {} left without; {}.",
        Count(capable, "packet"),
        Seconds(ended),
        Count(later, "packet"),
        reports(signals),
    );
    let from = sent[0].0.time();
    Ok(Judgement::yes(text)
        .at(ended, "packets with ECT", float(capable), "packets")
        .over(
            Span {
                from: ended,
                until: transfer.sending.until.max(ended),
            },
            "packets without, later",
            float(later),
            "packets",
        )
        .shown_in("number", Span { from, until: ended }))
}

/// When the sender knew what had become of a packet.
fn settled(entry: &LedgerEntry) -> Option<Nanos> {
    entry.acked.nanos().or(entry.declared_lost.nanos())
}

/// The receiver's reports on packets with ECT, as a clause.
fn reports(signals: &Signals<'_>) -> String {
    let echo = signals.marks.echo;
    let sent = signals.transfer.sent();
    let capable = || {
        sent.filter(|(it, _)| it.sent_ecn().is_some_and(Codepoint::is_capable))
            .filter(|(it, _)| it.space() == Some(bentpipe_wire::quic::Space::Application))
    };
    let (mut acked, mut bleached) = (0, 0);
    for (packet, entry) in capable() {
        acked += u64::from(entry.acked.is_some());
        bleached += u64::from(packet.received_ecn() == Some(Codepoint::NotEct));
    }
    let way = match bleached {
        0 => String::new(),
        _ => format!("; {bleached} of them arrived without ECT"),
    };
    if acked == 0 {
        return format!("none of them was acknowledged{way}");
    }
    if echo.with_counts == 0 {
        return format!("none of {} had ECN counts{way}", Count(echo.acks, "ACK"));
    }
    format!(
        "{acked} of them were acknowledged, and ACKs counted {} at most{way}",
        echo.most_counted
    )
}
