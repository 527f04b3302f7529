//! The data sender waited for flow-control credit.
//!
//! Names a receiver whose window is smaller than the BDP: over 600 ms, 1 MB of credit allows 14 Mbit/s (Endres 2022, section
//! 5.6.7, suspects it behind figure 5.17). Source of the terms: RFC 9000 section 4.
//!
//! Rule: yes, if the sender had used up its credit ([`super::super::credit`]) for at least [`SHARE_PERCENT`] of the time in
//! which it had new data to send, and for an RTT in all. No, with that share, otherwise.
//!
//! Not sure without the sender's side, unless frames of the sender say that it was blocked; for TCP, whose window is not
//! read; and if data stop, without an end of the stream, before any credit was seen.

use super::super::say::{Bytes, Percent, Rate, Seconds, float, in_seconds};
use super::super::signals::{Missing, Signals, Span, rate_of};
use super::{Judgement, Rule};
use crate::connection::{Frame, Protocol};

pub(super) const RULE: Rule = Rule {
    id: "limited_by_flow_control",
    title: "Limited by flow control",
    judge,
};

/// Less than this share of the time costs less than the spread between two seeds.
const SHARE_PERCENT: i64 = 5;

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.needs_sender_side()?;
    if signals.view.connection.protocol == Protocol::Tcp {
        return Missing::because("TCP's receive window is not read");
    }
    let (blocked, sending) = (&signals.blocked, signals.sending);
    if !blocked.credit_seen && !has_end(signals) {
        return Missing::because(
            "no MAX_DATA or MAX_STREAM_DATA arrived, and the initial limits are not read",
        );
    }
    let waited: i64 = blocked.spans.iter().map(|it| it.length()).sum();
    let part = in_seconds(waited) / in_seconds(sending.length()).max(f64::MIN_POSITIVE);
    let rtt = signals.needs_rtt()?;
    let (Some(first), Some(last), Some(limit)) =
        (blocked.spans.first(), blocked.spans.last(), blocked.limit)
    else {
        return Ok(Judgement::no(
            "The sender never used up the credit that it was given.".to_owned(),
        ));
    };
    let window = signals.on_link(blocked.window);
    let ceiling = rate_of(window, rtt);
    let text = format!(
        "From {} on, the sender waited {} for more credit, {} of the time in which it had data to send: {} was reached \
         with up to {} in flight, which allows {} at an RTT of {}.",
        Seconds(first.from),
        Seconds(waited),
        Percent(part),
        limit.name(),
        Bytes(window),
        Rate(ceiling),
        Seconds(rtt),
    );
    let is_limited = waited * 100 >= sending.length() * SHARE_PERCENT && waited >= rtt;
    let all = Span {
        from: first.from,
        until: last.until,
    };
    let mut judgement = Judgement::yes_if(is_limited, text)
        .over(all, "time without credit", in_seconds(waited), "s")
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

/// Whether the end of a stream was sent; some stacks send it alone.
fn has_end(signals: &Signals<'_>) -> bool {
    let connection = signals.view.connection;
    let mut frames = signals
        .sent()
        .flat_map(|(packet, _)| connection.frames(packet));
    frames.any(|frame| matches!(frame, Frame::Stream { fin: true, .. }))
}
