//! Messages of the handshake were sent more than once.

use std::collections::HashMap;

use super::super::quantities::{Count, Seconds, float};
use super::super::signals::Signals;
use super::super::span::Span;
use super::super::transfer::{Missing, arrived};
use super::{Judgement, Rule};
use crate::connection::{Frame, Nanos, Packet, Protocol, Vantage};
use crate::intervals::Intervals;
use bentpipe_wire::quic::Space;

/// Messages of the handshake were sent more than once. Before the first RTT sample, a probe timeout
/// is 999 ms (RFC 9002, section 6.2.2), or what the stack prefers. If that is less than the RTT,
/// every handshake is sent again.
///
/// - Yes: bytes of CRYPTO frames in Initial or Handshake packets of either end were sent again. The
///   text says how many packets did so needlessly, because an earlier copy arrived.
/// - Not sure: only one side was captured and shows no repetition; no handshake is in the capture;
///   TCP; Handshake packets could not be decrypted, and Initial packets, which need no secrets,
///   show no repetition.
pub(super) const RULE: Rule = Rule {
    id: "handshake_retransmitted",
    title: "Handshake sent again",
    judge,
};

/// The handshake data that one end sent in one packet number space.
#[derive(Default)]
struct Sent {
    all: Intervals,
    arrived: Intervals,
}

fn judge(signals: &Signals<'_>) -> Result<Judgement, Missing> {
    let connection = signals.transfer.view.connection;
    if connection.protocol == Protocol::Tcp {
        return Missing::because("TCP's handshake is not looked at");
    }
    let mut sent: HashMap<_, Sent> = HashMap::new();
    let (mut again, mut needless) = (Vec::<Nanos>::new(), 0);
    for (packet, entry) in signals.transfer.view.packets() {
        let Some(space @ (Space::Initial | Space::Handshake)) = packet.space() else {
            continue;
        };
        let sent = sent
            .entry((packet.sender as usize, space as usize))
            .or_default();
        let (mut is_again, mut is_needless) = (false, false);
        for frame in connection.frames(packet) {
            let Frame::Crypto { offset, length } = frame else {
                continue;
            };
            let range = *offset..offset.saturating_add(u64::from(*length));
            is_again |= sent.all.within(range.clone()).next().is_some();
            is_needless |= sent.arrived.within(range.clone()).next().is_some();
            sent.all.add(range.clone());
            if arrived(packet, entry) == Some(true) {
                sent.arrived.add(range);
            }
        }
        if is_again {
            again.push(packet.time());
        }
        needless += u64::from(is_needless);
    }
    let (Some(first), Some(last)) = (again.first(), again.last()) else {
        if sent.values().all(|it| it.all.sum() == 0) {
            return Missing::because("no handshake was captured, or it could not be decrypted");
        }
        let is_sealed =
            |packet: &Packet| packet.space() == Some(Space::Handshake) && !packet.decoded;
        if connection.packets.iter().any(is_sealed) {
            return Missing::because(
                "Initial packets were sent once; Handshake packets could not be decrypted (hint: \
                 --keylog)",
            );
        }
        if connection.vantage != Vantage::Both {
            return Missing::because(
                "nothing of the handshake was sent again as far as one side shows",
            );
        }
        return Ok(Judgement::no(
            "All messages of the handshake were sent once.".to_owned(),
        ));
    };
    let rtt = signals.transfer.rtt.map_or(String::new(), |rtt| {
        format!("; the RTT is {}", Seconds(rtt))
    });
    let text = format!(
        "From {} on, {} repeated messages of the handshake, {needless} of them needlessly because \
         an earlier copy arrived{rtt}.",
        Seconds(*first),
        Count(again.len() as u64, "packet"),
    );
    let span = Span {
        from: *first,
        until: *last,
    };
    Ok(Judgement::yes(text)
        .over(
            span,
            "packets that repeat the handshake",
            float(again.len() as u64),
            "packets",
        )
        .over(span, "of these, needless", float(needless), "packets")
        .shown_in("number", span))
}
