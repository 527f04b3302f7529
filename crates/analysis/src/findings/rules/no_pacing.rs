//! Packets leave in bursts, not spread over the round trip.

use super::super::quantities::{Bytes, Percent, Seconds, float, share};
use super::super::signals::Signals;
use super::super::span::{Span, at_rate};
use super::super::transfer::Missing;
use super::{Judgement, Rule};
use crate::connection::Nanos;

/// Packets left in bursts, not spread over the round trip. Endres, figure 5.11; RFC 9002, section
/// 7.7, would have bursts no larger than the initial window of 10 packets.
///
/// - Yes: more than [`SHARE_PERCENT`] % of the bytes left in bursts of more than [`BURST_PACKETS`]
///   packets. A burst is a run of packets at [`TIMES_THE_LINK`] times the link's rate or faster:
///   more than slow start that is clocked by ACKs needs. A pacer with a bucket of 10 packets lets
///   up to 19 go at once.
/// - Not sure: without the sender's side; without the link's rate. It needs no secrets.
pub(super) const RULE: Rule = Rule {
    id: "no_pacing",
    title: "Packets sent in bursts",
    judge,
};

/// Twice the initial window of RFC 9002 section 7.2: a pacer whose bucket holds 10 packets, and
/// fills again while it empties, lets up to 19 go at once.
const BURST_PACKETS: u64 = 20;
/// Slow start that is clocked by ACKs or paced sends at up to twice the bottleneck's rate, plus
/// pairs of packets for delayed ACKs; four times is beyond both.
const TIMES_THE_LINK: u64 = 4;
/// One burst at the start, or after a pause, is no lack of pacing.
const SHARE_PERCENT: u64 = 10;

/// Packets back to back.
#[derive(Debug, Clone, Copy)]
struct Burst {
    span: Span,
    packets: u64,
    bytes: u64,
}

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    signals.transfer.needs_data_packets_at_sender()?;
    let rate = signals.transfer.needs_rate()?;
    let bursts = bursts(signals, rate);
    let all: u64 = bursts.iter().map(|it| it.bytes).sum();
    let long = bursts.iter().filter(|it| it.packets > BURST_PACKETS);
    let in_long: u64 = long.clone().map(|it| it.bytes).sum();
    // Of equals, the first.
    let Some(longest) = bursts.iter().rev().max_by_key(|it| it.packets) else {
        return Missing::because("no stream data were sent");
    };
    let has_bursts = in_long * 100 > all * SHARE_PERCENT;
    let text = format!(
        "{} of the bytes left in {} bursts of more than {BURST_PACKETS} packets; the longest, at \
         {}, had {} packets ({}) at {TIMES_THE_LINK} times the link's rate or more.",
        Percent(share(in_long, all)),
        long.count(),
        Seconds(longest.span.from),
        longest.packets,
        Bytes(longest.bytes),
    );
    let judgement = Judgement::yes_if(has_bursts, text)
        .over(
            signals.transfer.sending,
            "share of bytes in long bursts",
            share(in_long, all) * 100.0,
            "%",
        )
        .over(
            longest.span,
            "longest burst",
            float(longest.packets),
            "packets",
        );
    Ok(if has_bursts {
        let rtt = signals.transfer.rtt.unwrap_or(0);
        judgement.shown_in(
            "offset",
            Span {
                from: longest.span.from,
                until: longest.span.from + 2 * rtt,
            },
        )
    } else {
        judgement
    })
}

fn bursts(signals: &Signals<'_>, rate: u64) -> Vec<Burst> {
    let mut bursts: Vec<Burst> = Vec::new();
    for (packet, _) in signals.transfer.sent_in_flight() {
        // Packets of one datagram are no burst; only the first has the IP packet's size.
        let Some(bytes) = packet.ip_size.map(u64::from) else {
            continue;
        };
        let time = packet.time();
        match bursts.last_mut() {
            Some(burst) if is_close(burst.span.until, time, bytes, rate) => {
                burst.span.until = time;
                burst.packets += 1;
                burst.bytes += bytes;
            }
            _ => bursts.push(Burst {
                span: Span {
                    from: time,
                    until: time,
                },
                packets: 1,
                bytes,
            }),
        }
    }
    bursts
}

/// Whether a packet of `bytes` bytes follows the one before at the burst's rate or faster.
fn is_close(before: Nanos, time: Nanos, bytes: u64, rate: u64) -> bool {
    at_rate(rate * TIMES_THE_LINK, time - before) <= bytes
}
