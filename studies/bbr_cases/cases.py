"""The cases of appendix A of draft-ietf-ccwg-bbr-06: the path of each, what judges it, what is drawn.

The numbers of sections and of cases are those of that version; sentences are not copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from . import changes, cycle, limited, startup
from .judgement import Judgement, untold
from .signals import Signals

Judge = Callable[[Signals, Signals | None], Judgement]
Quantity = Literal["pace", "use", "flight"]

HOLD_S = 0.1  # of bbr-aggregated
RISE_S, FALL_S = 8.0, 5.0  # of bbr-rise, bbr-fall
SPIKE_S = (6.0, 8.0)  # of bbr-spike: when it begins, and when the last packet in it has arrived
LIMITED_BYTES = 40 * 60_000.0  # of the page asked-one-by-one, before there is enough


@dataclass(frozen=True)
class Case:
    """A case that shows on the wire."""

    number: int  # in appendix A
    title: str
    sections: str  # of the draft, that the sender is held to
    asked: str  # what passes
    scenario: str
    judge: Judge
    draws: Quantity
    span_s: tuple[float, float]  # that is drawn
    page: str = ""  # that is loaded
    rate_bps: float | None = None  # that counts, where the path has several

    @property
    def name(self) -> str:
        return f"A.{self.number}"


def _alone(judge: Callable[[Signals], Judgement]) -> Judge:
    return lambda signals, _: judge(signals)


def _drain_in_time(signals: Signals, steady: Signals | None) -> Judgement:
    begin = steady and startup.drain_begin_s(steady)
    return startup.drain_in_time(signals, begin) if begin else untold("no DRAIN seen over the steady path")


def _in_order(signals: Signals, steady: Signals | None) -> Judgement:
    return changes.as_fast_as(signals, steady) if steady else untold("no trial in order")


CASES = (
    Case(1, "STARTUP ends on a plateau", "5.3.1.2", "DRAIN begins when the estimator says so, fed with what "
         "the wire shows, and the rate is within 2 % of the link's.",
         "bbr-steady", _alone(startup.on_plateau), "pace", (0, 1.6)),
    Case(2, "STARTUP ends on loss, limited by the application", "5.3.1.3", "After a second and a half with "
         "20 % loss the rate does not double when there is enough to send.", "bbr-limited-loss",
         lambda signals, _: limited.leaves_on_loss(signals, LIMITED_BYTES), "pace", (0, 8),
         page="asked-one-by-one"),
    Case(3, "DRAIN ends with a BDP in flight", "5.3.2", "The pace is half of the rate, until about a BDP is "
         "in flight.", "bbr-steady", _alone(startup.drain_to_bdp), "flight", (0, 1.6)),
    Case(4, "DRAIN ends in time", "5.3.2", "Where the rate falls to 10.5 Mbit/s within 25 ms of its begin, "
         "it ends after three to four rounds. The draft's fall by 10 % would not keep a sender at half of "
         "the rate from emptying the queue.", "bbr-cut", _drain_in_time, "flight", (0, 2)),
    Case(5, "UP ends on a plateau", "5.3.3.7", "A raised pace lasts for about three rounds.",
         "bbr-steady", _alone(cycle.up_to_plateau), "pace", (8, 13)),
    Case(7, "STARTUP does not end, limited by the application", "4.1.1.3, 5.3.1.2", "The rate doubles as "
         "soon as there is enough to send. UP does not show.", "bbr-limited",
         lambda signals, _: limited.stays_in_startup(signals, LIMITED_BYTES), "pace", (0, 5),
         page="asked-one-by-one"),
    Case(8, "DOWN ends with a BDP in flight", "5.3.3.1", "The pace is 0.9 of the rate until about a BDP is "
         "in flight, then that of the link.", "bbr-steady", _alone(cycle.down_to_bdp), "flight", (8, 13)),
    Case(10, "PROBE_RTT", "5.3.4.1", "Every five seconds half of a BDP is in flight for 200 ms and a round "
         "trip. No RTT sample of this path is lower than the first ones, so it is always due.",
         "bbr-steady", _alone(cycle.probe_rtt), "flight", (2, 20)),
    Case(11, "No PROBE_RTT after a pause", "5.4.1", "After six seconds without data what is in flight does "
         "not fall below three quarters of a BDP for a second.", "bbr-limited",
         _alone(limited.skips_probe_rtt), "flight", (6.5, 9.5), page="with-a-pause"),
    Case(12, "STARTUP with aggregation", "5.5.9", "With ACKs held for two round trips it finds the rate in "
         "two rounds for each doubling, with more than two BDP in flight.", "bbr-aggregated",
         lambda signals, _: startup.through_aggregation(signals, HOLD_S), "flight", (0, 4)),
    Case(13, "CRUISE with aggregation", "5.5.9", "It uses 95 % of the rate.", "bbr-aggregated",
         _alone(changes.through_aggregation), "use", (2, 20)),
    Case(14, "A BDP below a packet", "5.6.4.3", "In the last third of a minute about four packets are in "
         "flight, and 95 % of the rate is used.", "bbr-small", _alone(changes.below_a_packet), "flight",
         (0, 60)),
    Case(15, "Ten times the rate", "5.3.3.5", "It finds 90 % of it within three seconds and two round "
         "trips for each doubling.", "bbr-rise", lambda signals, _: changes.tenfold(signals, RISE_S), "use",
         (6, 16), rate_bps=20e6),
    Case(16, "A tenth of the rate", "5.5.6, 5.5.10.3", "Two cycles later no more than 2.25 BDP are in "
         "flight, and less than 2 % is lost.", "bbr-fall",
         lambda signals, _: changes.tenth(signals, FALL_S), "flight", (4, 20), rate_bps=2e6),
    Case(17, "A token bucket", "5.5.10.3", "In the second half less than 2 % is lost, and 70 % of the rate "
         "is used.", "bbr-policed", _alone(changes.policed), "pace", (0, 20), rate_bps=10e6),
    Case(18, "Spurious fast recovery", "5.5.11", "With one packet in 100 late by 10 ms, and none lost, it "
         "has 95 % of its rate in order.", "bbr-reordered", _in_order, "use", (2, 20)),
    Case(19, "Spurious RTO", "5.5.11", "A second after a delay of a second ends, it has 95 % of its rate "
         "before. In QUIC a PTO reduces no window.", "bbr-spike",
         lambda signals, _: changes.back_after(signals, *SPIKE_S), "use", (4, 14)),
    Case(20, "PROBE_RTT in STARTUP", "5.3.4.4", "Over a round trip of a second it comes when five seconds "
         "passed without a lower RTT sample, and the rate grows again afterwards.",
         "bbr-far", _alone(startup.probe_rtt_in_startup), "flight", (0, 20)),
    Case(21, "Loss in UP", "5.3.3.7, 5.5.10.2", "In front of a queue of a fifth of the BDP, the pace is "
         "below the rate in the round after a loss of more than 2 %.", "bbr-shallow",
         _alone(cycle.loss_ends_up), "pace", (8, 13)),
)  # fmt: skip

HIDDEN = {
    6: "UP that ends on loss, limited by the application: it paces all phases equally, and UP does not show.",
    9: "DOWN that ends in time: the rate would have to fall as DOWN begins, when it does differs from cycle "
    "to cycle, and behind a rate of 0.9 DOWN and CRUISE with a full window look the same.",
    22: "REFILL, limited by the application: REFILL is paced as CRUISE is, and only the sender knows when to "
    "pause.",
}
