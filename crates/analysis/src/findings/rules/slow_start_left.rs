//! Slow start left early, at the choke point, or late: the three exits of figure 1 of the WPI
//! report on SEARCH (2024).

use super::super::quantities::{Bytes, Count, Percent, Rate, Seconds, float, share};
use super::super::signals::Signals;
use super::super::slow_start::{Exit, SlowStart};
use super::super::span::{Span, at_rate};
use super::super::transfer::Missing;
use super::{Judgement, Rule};

/// The window stopped growing before the path was full. WPI, figure 1 a; Endres, figure 5.9; Kosek,
/// figure 2.
///
/// Slow start ends with the first round whose window (most bytes in flight; with a qlog, the
/// largest logged window) is less than 120 % of the largest before, if the next is not larger
/// either, or if a loss was declared in that round or the one before. Conservative slow start (RFC
/// 9406) still grows by more; congestion avoidance of a large window by less. With a qlog, slow
/// start ends no later than the first time that the logged window falls by a tenth and has not
/// regained its size two round trips later. If credit or pauses took an eighth of the round, they
/// held the window: that is no end of slow start.
///
/// - Yes: less than [`FULL_PERCENT`] % of the BDP was in flight at that time, whatever ended it:
///   unpaced bursts overflow a small queue long before the path is full. The text says which share
///   of the link stayed empty until a round used 90 % of it.
/// - No also if the data or the capture ended first, or flow control held the window.
/// - Not sure: without the sender's side; without the link's rate; if the sender paused; if the
///   capture has no handshake or not the first stream data; if the window grew until nothing more
///   was acknowledged, three RTTs or more before the end.
pub(super) const EARLY: Rule = Rule {
    id: "slow_start_left_early",
    title: "Slow start left early",
    judge: |signals| judge(signals, ExitKind::Early),
};

/// The window stopped growing when the path was full. WPI, figure 1 c.
///
/// - Yes: at least [`FULL_PERCENT`] % of the BDP was in flight, and the exit was not late.
/// - Not sure: as above.
pub(super) const AT_CHOKE_POINT: Rule = Rule {
    id: "slow_start_left_at_choke_point",
    title: "Slow start left at the choke point",
    judge: |signals| judge(signals, ExitKind::AtChokePoint),
};

/// The window outgrew the path, at the price of a loss storm. WPI, figure 1 b. Other than there, an
/// exit beyond the capacity that a queue absorbs without loss is not called late.
///
/// - Yes: more than the BDP was in flight, and of the packets sent in the round that holds the exit
///   and the one before, at least [`STORM_PERCENT`] % and at least [`STORM_PACKETS`] did not
///   arrive.
/// - Not sure: as above.
pub(super) const LATE: Rule = Rule {
    id: "slow_start_left_late",
    title: "Slow start left late",
    judge: |signals| judge(signals, ExitKind::Late),
};

/// A path with this share of the BDP in flight is as good as full: ACKs that come in pairs, and the
/// round's grain, leave 10 to 20 % uncertain.
const FULL_PERCENT: u64 = 80;
/// As in rule `loss_storm`: fewer are the price of any probing, or chance.
const STORM_PERCENT: u64 = 5;
const STORM_PACKETS: u64 = 20;
/// The link counts as filled at last in the first round that uses this share of it.
const FILLED: f64 = 0.9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExitKind {
    Early,
    AtChokePoint,
    Late,
}

fn judge(signals: &Signals<'_>, asked: ExitKind) -> Result<Judgement, Missing> {
    let exit = match signals.slow_start.clone()? {
        SlowStart::Left(exit) => exit,
        SlowStart::OutOfData(in_flight) => {
            return Ok(Judgement::no(format!(
                "Slow start was not left: {} while the window still grew, with {} in flight at \
                 most.",
                signals.transfer.ended(),
                Bytes(signals.transfer.on_link(in_flight)),
            )));
        }
        SlowStart::HeldByCredit(held) => {
            let loss = held.loss.map_or(String::new(), |loss| {
                format!("; the first loss was declared at {}", Seconds(loss))
            });
            return Ok(Judgement::no(format!(
                "Slow start did not end of itself: from {} on, flow control kept the window from \
                 growing, with {} in flight{loss}.",
                Seconds(held.at),
                Bytes(signals.transfer.on_link(held.in_flight)),
            )));
        }
        SlowStart::HeldByPauses(held) => {
            return Missing::because(format!(
                "from {} on the sender paused with room in its window, which had had {} in flight",
                Seconds(held.at),
                Bytes(signals.transfer.on_link(held.in_flight)),
            ));
        }
    };
    let found = JudgedExit::of(signals, &exit)?;
    let text = found.text(signals, &exit);
    let judgement = Judgement::yes_if(found.kind == asked, text)
        .at(exit.at, "in flight", float(found.in_flight), "bytes")
        .at(
            exit.at,
            "bandwidth-delay product",
            float(found.bdp),
            "bytes",
        );
    Ok(match asked {
        ExitKind::Early if found.kind == asked => judgement
            .over(
                found.after,
                "share of the link left empty",
                found.empty * 100.0,
                "%",
            )
            .shown_in("in_flight", found.after),
        ExitKind::Late if found.kind == asked => judgement
            .at(
                exit.at,
                "packets lost in the overshoot",
                float(exit.lost),
                "packets",
            )
            .shown_in("in_flight", found.around),
        _ if found.kind == asked => judgement.shown_in("in_flight", found.around),
        _ => judgement,
    })
}

/// The exit, held against the path.
struct JudgedExit {
    kind: ExitKind,
    /// As bytes of IP packets.
    in_flight: u64,
    bdp: u64,
    /// From the start to a little after the exit.
    around: Span,
    /// From the exit until the link was filled, or the data had been sent.
    after: Span,
    is_filled: bool,
    /// Which share of the link stayed empty in that time.
    empty: f64,
}

impl JudgedExit {
    fn of(signals: &Signals<'_>, exit: &Exit) -> Result<Self, Missing> {
        let (rate, bdp) = (
            signals.transfer.needs_rate()?,
            signals.transfer.needs_bdp()?,
        );
        let in_flight = signals.transfer.on_link(exit.in_flight);
        let is_storm =
            exit.lost >= STORM_PACKETS && exit.lost * 100 >= exit.packets * STORM_PERCENT;
        let kind = match () {
            () if in_flight * 100 < bdp * FULL_PERCENT => ExitKind::Early,
            () if in_flight > bdp && is_storm => ExitKind::Late,
            () => ExitKind::AtChokePoint,
        };
        let rounds = signals.rounds.iter().filter(|it| it.span.from >= exit.at);
        let mut used = rounds.clone().map(|it| (it.span, it.ip_bytes));
        let filled = used
            .find(|(span, bytes)| float(*bytes) >= FILLED * float(at_rate(rate, span.length())));
        let after = Span {
            from: exit.at,
            until: filled
                .map_or(signals.transfer.sending.until, |(span, _)| span.from)
                .max(exit.at),
        };
        let sent = signals
            .transfer
            .sent_in_flight()
            .filter(|(packet, _)| after.has(packet.time()));
        let sent: u64 = sent
            .map(|(packet, _)| u64::from(packet.ip_size.unwrap_or(0)))
            .sum();
        Ok(Self {
            kind,
            in_flight,
            bdp,
            around: Span {
                from: signals.transfer.sending.from,
                until: exit.at,
            },
            after,
            is_filled: filled.is_some(),
            empty: (1.0 - share(sent, at_rate(rate, after.length()))).max(0.0),
        })
    }

    fn text(&self, signals: &Signals<'_>, exit: &Exit) -> String {
        let cause = if exit.by_loss {
            "on a loss"
        } else {
            "without a loss"
        };
        let start = format!(
            "The window stopped growing {cause} at {} with {} in flight, {} of the path's {}",
            Seconds(exit.at),
            Bytes(self.in_flight),
            Percent(share(self.in_flight, self.bdp)),
            Bytes(self.bdp),
        );
        match self.kind {
            ExitKind::Early if self.after.length() > 0 => format!(
                "{start}: {} of the link's {} stayed empty until {}{}.",
                Percent(self.empty),
                Rate(
                    signals
                        .transfer
                        .rate_from(signals.transfer.sender)
                        .map_or(0.0, float)
                ),
                match (self.is_filled, signals.transfer.is_whole) {
                    (true, _) => "",
                    (false, true) => "the last new data at ",
                    (false, false) => "the capture ends at ",
                },
                Seconds(self.after.until),
            ),
            _ => format!(
                "{start}; {} of the {} that were sent in the last two rounds did not arrive.",
                exit.lost,
                Count(exit.packets, "packet"),
            ),
        }
    }
}
