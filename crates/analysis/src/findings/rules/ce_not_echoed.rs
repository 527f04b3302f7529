//! The receiver does not report the marks that it got.

use super::super::quantities::{Count, float};
use super::super::signals::Signals;
use super::super::span::Span;
use super::super::transfer::Missing;
use super::{Judgement, Rule};
use crate::connection::{Codepoint, Frame, Nanos, Packet, Protocol, Vantage};

/// The receiver got packets with Congestion Experienced, and its ACKs do not say so: the sender
/// cannot slow down. RFC 9000, section 13.4.1; RFC 3168, section 6.1.3.
///
/// - Yes: it reported less than [`LEAST_PERCENT`] % of the marks that came before its last ACK; of
///   TCP, which reports that there are marks and not how many, none.
/// - Not sure: without the receiver's side; without secrets; accurate ECN of TCP (RFC 9768).
pub(super) const RULE: Rule = Rule {
    id: "ce_not_echoed",
    title: "Marks not reported",
    judge,
};

/// An ACK may leave before the packets of the same instant are in it.
const LEAST_PERCENT: u64 = 50;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    let transfer = &signals.transfer;
    transfer.needs_data()?;
    let (connection, receiver) = (transfer.view.connection, transfer.sender.other());
    if !matches!(connection.vantage, Vantage::Both) && connection.vantage != Vantage::At(receiver) {
        return Missing::because(format!(
            "the side of the {}, where marks arrive, was not captured",
            receiver.name()
        ));
    }
    let Some(echoed) = signals.marks.echo.ce else {
        return Missing::because("the counters of accurate ECN are not read");
    };
    let marked: Vec<Nanos> = marked_before(signals, last_ack(signals));
    let (Some(first), Some(last)) = (marked.iter().min(), marked.iter().max()) else {
        return Ok(Judgement::no(
            "No packet arrived with a mark that an ACK could report.".to_owned(),
        ));
    };
    let arrived = marked.len() as u64;
    let (is_silent, reported) = match connection.protocol {
        Protocol::Tcp => (
            echoed == 0,
            format!("{} of ECN-Echo", Count(echoed, "episode")),
        ),
        Protocol::Quic(_) => {
            let echo = signals.marks.echo;
            let is_short = echoed * 100 < arrived * LEAST_PERCENT;
            let counts = format!(
                "{echoed}, in {} of {} with ECN counts",
                echo.with_counts,
                Count(echo.acks, "ACK")
            );
            (is_short, counts)
        }
    };
    let text = format!(
        "{} arrived at the {} with a mark; it reported {reported}.",
        Count(arrived, "packet"),
        receiver.name(),
    );
    let span = Span {
        from: *first,
        until: *last,
    };
    let judgement = Judgement::yes_if(is_silent, text)
        .over(
            span,
            "packets that arrived with CE",
            float(arrived),
            "packets",
        )
        .over(span, "marks reported", float(echoed), "marks");
    Ok(if is_silent {
        judgement.shown_in("number", span)
    } else {
        judgement
    })
}

/// When the receiver sent its last ACK.
fn last_ack(signals: &Signals<'_>) -> Nanos {
    let transfer = &signals.transfer;
    let connection = transfer.view.connection;
    let own = transfer.view.packets().map(|(packet, _)| packet);
    let own = own.filter(|it| it.sender != transfer.sender);
    let acks = own.filter(|packet| {
        let mut frames = connection.frames(packet).iter();
        frames.any(|frame| matches!(frame, Frame::Ack { .. }))
    });
    let sent = acks.filter_map(Packet::sent);
    sent.max().unwrap_or(Nanos::MIN)
}

/// When packets of the data sender arrived with CE, before a time.
fn marked_before(signals: &Signals<'_>, time: Nanos) -> Vec<Nanos> {
    let sent = signals.transfer.sent().map(|(packet, _)| packet);
    let marked = sent.filter(|it| it.received_ecn() == Some(Codepoint::Ce));
    let arrivals = marked.filter_map(Packet::received);
    arrivals.filter(|at| *at < time).collect()
}
