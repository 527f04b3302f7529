//! The data sender waited for flow-control credit.

use super::super::quantities::{Bytes, Percent, Rate, Seconds, float, share};
use super::super::signals::Signals;
use super::super::span::{Span, at_rate, percent_of, rate_of};
use super::super::transfer::Missing;
use super::{Judgement, Rule};
use crate::connection::{Frame, Nanos, Protocol};
use crate::durations::seconds;

/// The receiver's credit was used up. Over 600 ms, 1 MB of credit allows 14 Mbit/s. RFC 9000,
/// section 4; suspected behind Endres, figure 5.17.
///
/// - Yes: the sender was without credit for at least [`SHARE_PERCENT`] % of the time in which it
///   had new data, and for an RTT in all. The text says what was in flight then, and which rate
///   that allows.
/// - No also if credit is not the cause: data sent again took half of the link in that time (a
///   receiver's window slides no further than the first byte that is missing); or the credit
///   allowed the BDP or more, and data were sent again during most of it or the path did not run
///   empty for two RTTs.
/// - Not sure: without the sender's side, unless frames of the sender say that it was blocked; TCP,
///   whose window is not read; if no credit is known and no stream ended.
pub(super) const RULE: Rule = Rule {
    id: "limited_by_flow_control",
    title: "Limited by flow control",
    judge,
};

/// Less than this share of the time costs less than the spread between two seeds.
const SHARE_PERCENT: i64 = 5;
/// Repeated data fill the time without credit if they took this share of the link then. Below it,
/// most of it was waiting.
const FILLED: f64 = 0.5;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_sender_side()?;
    if signals.transfer.view.connection.protocol == Protocol::Tcp {
        return Missing::because("TCP's receive window is not read");
    }
    let (blocked, sending) = (&signals.blocked, signals.transfer.sending);
    if !blocked.credit_seen && !has_end(signals) {
        return Missing::because(
            "no MAX_DATA or MAX_STREAM_DATA arrived, and the transport parameters were not seen",
        );
    }
    let waited: i64 = blocked.spans.iter().map(|it| it.length()).sum();
    let part = seconds(waited) / seconds(sending.length()).max(f64::MIN_POSITIVE);
    let rtt = signals.transfer.needs_rtt()?;
    let (Some(first), Some(last), Some(limit)) =
        (blocked.spans.first(), blocked.spans.last(), blocked.limit)
    else {
        return Ok(Judgement::no(
            "The sender never used up the credit that it was given.".to_owned(),
        ));
    };
    let window = signals.transfer.on_link(blocked.window);
    let time = format!(
        "From {} on, the sender waited {} for more credit, {} of the time in which it had data to \
         send",
        Seconds(first.from),
        Seconds(waited),
        Percent(part),
    );
    let held = CreditUse::of(signals, waited, window);
    let text = match &held {
        CreditUse::ByTheWindow => format!(
            "{time}: {} was reached with up to {} in flight, which allows {} at an RTT of {}.",
            limit.name(),
            Bytes(window),
            Rate(rate_of(window, rtt)),
            Seconds(rtt),
        ),
        CreditUse::ByLosses(again) => format!(
            "{time}, and sent {} again meanwhile: {} was reached because lost data held the \
             receiver's window, with up to {} in flight.",
            Bytes(*again),
            limit.name(),
            Bytes(window),
        ),
        CreditUse::WithAFullPath(bdp) => format!(
            "{time}, but {} allowed up to {} in flight, and {} fill the path.",
            limit.name(),
            Bytes(window),
            Bytes(*bdp),
        ),
    };
    let is_limited = held == CreditUse::ByTheWindow
        && waited >= percent_of(sending.length(), SHARE_PERCENT)
        && waited >= rtt;
    let all = Span {
        from: first.from,
        until: last.until,
    };
    let mut judgement = Judgement::yes_if(is_limited, text)
        .over(all, "time without credit", seconds(waited), "s")
        .over(
            all,
            "largest window that the credit allowed",
            float(window),
            "bytes",
        );
    if blocked.frames > 0 {
        let what = "STREAM_DATA_BLOCKED and DATA_BLOCKED frames";
        judgement = judgement.over(all, what, float(blocked.frames), "frames");
    }
    Ok(if is_limited {
        judgement.shown_in("in_flight", all)
    } else {
        judgement
    })
}

/// The cause of exhausted credit.
#[derive(Debug, PartialEq, Eq)]
enum CreditUse {
    /// The receiver's window is small, or the receiver does not read.
    ByTheWindow,
    /// The receiver's window slides no further than the first byte that is missing; this many were
    /// sent again meanwhile.
    ByLosses(u64),
    /// The window is at least the BDP: credit for more would have stood in a queue.
    WithAFullPath(u64),
}

impl CreditUse {
    fn of(signals: &Signals<'_>, waited: Nanos, window: u64) -> Self {
        let Ok(rate) = signals.transfer.needs_rate() else {
            return Self::ByTheWindow;
        };
        let spans = &signals.blocked.spans;
        let mut sent = vec![0; spans.len()];
        let mut again = vec![0; spans.len()];
        for (packet, entry) in signals.transfer.sent_in_flight() {
            let at = spans.partition_point(|it| it.until <= packet.time());
            if spans.get(at).is_some_and(|it| it.has(packet.time())) {
                let bytes = u64::from(packet.ip_size.unwrap_or(0));
                sent[at] += bytes;
                again[at] += if entry.retransmitted > 0 { bytes } else { 0 };
            }
        }
        let in_all: u64 = again.iter().sum();
        let fills_path = signals
            .transfer
            .needs_bdp()
            .ok()
            .filter(|bdp| window >= *bdp);
        let repairing = spans.iter().zip(&again).filter(|(_, again)| **again > 0);
        let repairing: Nanos = repairing.map(|(span, _)| span.length()).sum();
        if share(in_all, at_rate(rate, waited)) >= FILLED
            || (fills_path.is_some() && repairing >= waited / 2)
        {
            return Self::ByLosses(in_all);
        }
        // A receiver that stops reading leaves the path empty, however large its window.
        let drains = |span: &Span| span.length() / 2 >= signals.transfer.rtt.unwrap_or(0);
        let is_empty = |(span, sent): (&Span, u64)| {
            drains(span) && share(sent, at_rate(rate, span.length())) < FILLED
        };
        match fills_path {
            Some(bdp) if !spans.iter().zip(sent).any(is_empty) => Self::WithAFullPath(bdp),
            _ => Self::ByTheWindow,
        }
    }
}

/// Whether the end of a stream was sent; some stacks send it alone.
fn has_end(signals: &Signals<'_>) -> bool {
    let connection = signals.transfer.view.connection;
    let mut frames = signals
        .transfer
        .sent()
        .flat_map(|(packet, _)| connection.frames(packet));
    frames.any(|frame| matches!(frame, Frame::Stream { fin: true, .. }))
}
