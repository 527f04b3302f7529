"""STARTUP and DRAIN: appendices A.1, A.3, A.4, A.12 and A.20 of draft-ietf-ccwg-bbr-06."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .judgement import Judgement, failed, held, untold
from .signals import Signals, spans

GROWTH = 1.25  # section 5.3.1.2: a round below it counts towards the plateau
ROUNDS = 3  # the same: so many of these end STARTUP
OFF_BY = 1.0  # round: the wire shows the begin and the end of a phase to about half of one each
LATE = 1.5  # rounds: the same, and the estimator may count from the round before
CLOSE = 0.02  # appendix A.1: of the estimated rate to the bottleneck's
DRAINING = 0.75  # a pace below it is neither STARTUP's nor that of PROBE_BW (sections 5.3.1.1, 5.3.3)
STARTING = 1.35  # a pace above it is of STARTUP, whose gain is 2.77, and not of UP, with 1.25
DRAIN = (0.45, 0.55)  # section 5.3.2: a gain of 0.5
NEAR_BDP = (0.8, 1.15)  # of what is in flight when DRAIN ends: the quantum of section 5.6.4.2 is above it
ABOVE_BDP = 1.3  # so much in flight does not end DRAIN
LAST_ROUND = 4  # section 5.3.2: after the third round ends the next one begins, in which DRAIN ends
PATIENCE = 6  # rounds after the plateau in which an exit is looked for
HANDSHAKE = 1.25  # round trips: before, the server has no request
PACKET = 1500  # bytes
PROBE_RTT_S = 5.0  # section 5.3.4.1: the interval


@dataclass(frozen=True)
class FullPipe:
    """When the estimator of section 5.3.1.2 finds the pipe full, and the share of the rate that it knows."""

    flat_s: float  # the end of the last round that grew
    full_s: float
    use: float


@dataclass(frozen=True)
class Drain:
    """The phase of lowered pace behind STARTUP."""

    begin_s: float
    end_s: float  # infinite: it never ends


def full_pipe(signals: Signals) -> FullPipe | None:
    """The draft's estimator on the samples that the wire shows; None if it never finds the pipe full."""
    times, rates = signals.delivery_rates
    begin, base, count = HANDSHAKE * signals.path.rtt_s, 0.0, 0
    flat = begin
    while (end := signals.round_end(begin)) is not None and end > begin:
        mine = rates[np.searchsorted(times, begin, "right") : np.searchsorted(times, end, "right")]
        rate = float(mine.max(initial=0.0))
        if rate >= GROWTH * base:
            base, count, flat = rate, 0, end
        else:
            count += 1
            if count == ROUNDS:
                return FullPipe(flat, end, min(max(base, rate), 1.0))
        begin = end
    return None


def drain(signals: Signals, pipe: FullPipe) -> Drain | None:
    """What follows the plateau soon, and is not followed by a pace of STARTUP; None if nothing does."""
    rtt = signals.path.rtt_s
    times = signals.times(pipe.flat_s, min(pipe.full_s + 4 * PATIENCE * rtt, signals.end_s))
    paces = signals.paces(times)
    for begin, last in spans(times, paces < DRAINING, rtt / 4):
        if signals.rounds(pipe.full_s, begin) > PATIENCE:
            return None
        after = times > last
        if float(paces[after & (times < last + 4 * rtt)].max(initial=0.0)) < STARTING:
            return Drain(begin, float(times[after][0]) if after.any() else math.inf)
    return None


def on_plateau(signals: Signals) -> Judgement:
    """A.1: it drains when 3 rounds did not grow by 25 %, and the rate is within 2 % of the bottleneck's."""
    pipe = full_pipe(signals)
    if pipe is None:
        return failed("the rate never stops growing")
    found = drain(signals, pipe)
    lost = signals.loss(0, pipe.full_s if found is None else found.begin_s)
    if lost > 0:
        return untold(f"the queue overflowed first: {100 * lost:.0f} % lost")
    if found is None:
        times = signals.times(pipe.full_s, pipe.full_s + 10 * signals.path.rtt_s)
        return failed(f"no DRAIN in {PATIENCE} rounds, {float(signals.bdps(times).max()):.1f} BDP in flight")
    late = signals.rounds(pipe.full_s, found.begin_s) - signals.rounds(found.begin_s, pipe.full_s)
    where = "after" if late >= 0 else "before"
    seen = f"DRAIN {abs(late):.1f} rounds {where} the estimator's end, at {pipe.use:.2f} of the rate"
    return held(abs(late) <= LATE and pipe.use >= 1 - CLOSE, seen)


def drain_to_bdp(signals: Signals) -> Judgement:
    """A.3: DRAIN is paced at half of the rate, and ends when a BDP is in flight."""
    pipe = full_pipe(signals)
    found = drain(signals, pipe) if pipe else None
    if found is None or math.isinf(found.end_s):
        return failed("no DRAIN seen")
    edge = min(signals.path.rtt_s, (found.end_s - found.begin_s) / 2) / 4  # it shows a little too long
    gain, bdps = signals.pace(found.begin_s + edge, found.end_s - edge), float(signals.bdps(found.end_s))
    seen = f"pace {gain:.2f} until {bdps:.2f} BDP are in flight"
    return held(DRAIN[0] <= gain <= DRAIN[1] and NEAR_BDP[0] <= bdps <= NEAR_BDP[1], seen)


def drain_begin_s(signals: Signals) -> float | None:
    """When DRAIN begins; None if none shows."""
    pipe = full_pipe(signals)
    found = drain(signals, pipe) if pipe else None
    return found.begin_s if found else None


def drain_in_time(signals: Signals, begin_s: float) -> Judgement:
    """A.4: where the rate falls as DRAIN begins, it ends after 3 rounds with more than a BDP in flight.

    `begin_s`: when DRAIN begins. The path is as it was before.
    """
    times = signals.times(begin_s + signals.path.rtt_s, signals.end_s - signals.path.rtt_s)
    fast = np.flatnonzero(signals.paces(times) >= DRAINING)
    if not len(fast):
        return untold("the pace never comes back: DRAIN lasts, or the window is full")
    end = float(times[fast[0]])
    bdps, rounds = float(signals.bdps(end)), signals.rounds(begin_s, end)
    seen = f"DRAIN lasts {rounds:.1f} rounds, until {bdps:.2f} BDP are in flight"
    if bdps <= ABOVE_BDP and rounds <= LAST_ROUND + OFF_BY:
        return untold(f"what is in flight may have ended it: {seen}")
    return held(ROUNDS - OFF_BY <= rounds <= LAST_ROUND + OFF_BY, seen)


def log_rounds(signals: Signals) -> float:
    """The rounds that O(log(BDP)) stands for: two for each doubling from a packet to the BDP."""
    return 2 * math.log2(signals.path.bdp_bytes / PACKET)


def through_aggregation(signals: Signals, hold_s: float) -> Judgement:
    """A.12: with ACKs held it finds the rate in O(log(BDP)) rounds, with more than 2 BDP in flight.

    `hold_s`: for how long they are held.
    """
    round_s = signals.path.rtt_s + hold_s
    bound_s = log_rounds(signals) * round_s
    times = np.arange(0.0, bound_s, round_s / 4)
    uses = [signals.use(time, time + 2 * round_s) for time in times]
    most = float(signals.bdps(np.arange(0.0, bound_s + round_s, round_s / 16)).max())
    seen = f"up to {max(uses):.2f} of the rate in the first {bound_s:.1f} s, {most:.1f} BDP in flight"
    return held(max(uses) >= 1 - CLOSE and most > 2, seen)


def probe_rtt_in_startup(signals: Signals) -> Judgement:
    """A.20: over a long way it probes the RTT in STARTUP when 5 s have passed, and grows again afterwards."""
    rtt = signals.path.rtt_s
    used = np.flatnonzero(signals.delivery_rates[1] >= 1 / GROWTH)
    found_s = float(signals.delivery_rates[0][used[0]]) if len(used) else None
    due = probe_rtt_due(signals)
    if found_s is not None and found_s < due + rtt:
        return untold(f"STARTUP finds the rate after {found_s:.1f} s, before a PROBE_RTT is due")
    dip = _first_dip(signals, found_s or signals.end_s)
    if dip is None or dip > due + 3 * rtt:
        return failed(f"no PROBE_RTT in STARTUP, which is due after {due:.1f} s")
    if found_s is None:
        return failed(f"PROBE_RTT after {dip:.1f} s, and no growth to the rate in {signals.end_s:.0f} s")
    wanted = math.log(signals.path.bdp_bytes / max(float(signals.in_flight(dip)), PACKET), GROWTH)
    rounds = (found_s - dip) / rtt
    seen = f"PROBE_RTT after {dip:.1f} s, the rate {rounds:.0f} round trips later"
    return held(rounds <= wanted + 2 * ROUNDS, seen)


def probe_rtt_due(signals: Signals) -> float:
    """When no RTT sample was lower than all before for 5 s, for the first time (section 5.3.4.3)."""
    lower = signals.lowest_rtt_s
    gaps = np.flatnonzero(np.diff(lower, append=math.inf) > PROBE_RTT_S)
    return float(lower[gaps[0]]) + PROBE_RTT_S


def _first_dip(signals: Signals, until_s: float) -> float | None:
    """When what is in flight falls to 0.6 of the most before; None if it does not before the time."""
    times = signals.times(PROBE_RTT_S, until_s)
    flight = signals.in_flight(times)
    most = np.maximum.accumulate(flight) if len(flight) else flight
    low = np.flatnonzero(flight <= 0.6 * most)
    return float(times[low[0]]) if len(low) else None
