"""Paths that change or disturb: appendices A.13 to A.19 of draft-ietf-ccwg-bbr-06.

The draft names no number for most of these cases. Those chosen here stand beside the constants that they
are taken from.
"""

from __future__ import annotations

import numpy as np

from .judgement import Judgement, failed, held
from .signals import Signals
from .startup import PACKET, log_rounds

USED = 0.95  # of the rate: PROBE_RTT may cost 2 % (section 5.3.4.2), DOWN and headers the rest
FLOOR = 4  # packets: MinPipeCwnd (section 2.8)
UP_ADDS = 2  # packets: section 5.6.4.2
FOUND = 0.9  # of the new rate
WAIT_S = 3.0  # the longest wait for a probe: section 5.3.3.8.2
CYCLES = 2  # section 2.11: MaxBwFilterLen
MOST_BDP = 2.25  # section 5.3.3.5: the largest gain of the window, that of UP
LOSS = 0.02  # section 2.8: LossThresh
BETA = 0.7  # section 2.8: what a loss leaves of the window
SETTLED_S = 6.0
KEPT = 0.95  # of what the same sender has without the disturbance


def through_aggregation(signals: Signals) -> Judgement:
    """A.13: with ACKs held back it keeps the rate."""
    use = signals.use(SETTLED_S, signals.end_s)
    most = float(signals.bdps(signals.times(SETTLED_S, signals.end_s)).max())
    return held(use >= USED, f"{use:.2f} of the rate, up to {most:.1f} BDP in flight")


def below_a_packet(signals: Signals) -> Judgement:
    """A.14: with a BDP below a packet, about 4 packets are in flight in the end, and the rate is used."""
    begin = signals.end_s * 2 / 3
    use = signals.use(begin, signals.end_s)
    times = np.arange(begin, signals.end_s, 0.05)
    size = float(np.max(signals.packets.size, initial=PACKET / 2))
    flight = float(np.median(signals.in_flight(times))) / size
    return held(
        use >= USED and flight <= FLOOR + UP_ADDS, f"{use:.2f} of the rate, {flight:.0f} packets in flight"
    )


def tenfold(signals: Signals, at_s: float) -> Judgement:
    """A.15: it finds ten times the rate within the wait for a probe and O(log(BDP)) round trips."""
    bound = WAIT_S + log_rounds(signals) * signals.path.rtt_s
    for time in np.arange(at_s, signals.end_s - 1, signals.path.rtt_s):
        if signals.use(float(time), float(time) + 0.5) >= FOUND:
            took = float(time) - at_s
            return held(took <= bound, f"after {took:.1f} s (within {bound:.1f} s)")
    return failed(f"not within {signals.end_s - at_s:.0f} s")


def tenth(signals: Signals, at_s: float) -> Judgement:
    """A.16: two cycles after the rate fell to a tenth, the sender holds to it.

    Then no more is in flight than its largest window allows, and less than 2 % is lost.
    """
    begin = at_s + CYCLES * WAIT_S + 10 * signals.path.rtt_s
    flight = float(np.median(signals.bdps(signals.times(begin, signals.end_s))))
    loss = signals.loss(begin, signals.end_s)
    seen = f"{begin - at_s:.0f} s later {flight:.1f} BDP in flight, {100 * loss:.1f} % lost"
    return held(flight <= MOST_BDP and loss <= LOSS, seen)


def policed(signals: Signals) -> Judgement:
    """A.17: behind a token bucket it loses less than 2 %, and has at least 0.7 of the bucket's rate."""
    begin = signals.end_s / 2
    use, loss = signals.use(begin, signals.end_s), signals.loss(begin, signals.end_s)
    return held(use >= BETA and loss <= LOSS, f"{use:.2f} of the rate, {100 * loss:.1f} % lost")


def as_fast_as(signals: Signals, undisturbed: Signals) -> Judgement:
    """A.18: with packets late, and none lost, it is as fast as without."""
    now, then = (one.use(SETTLED_S, one.end_s) for one in (signals, undisturbed))
    return held(now >= KEPT * then, f"{now:.2f} of the rate, {then:.2f} in order")


def back_after(signals: Signals, from_s: float, until_s: float) -> Judgement:
    """A.19: a second after a delay that outlasted its timer, it is as fast as before.

    `from_s`: when the delay grew; `until_s`: when the last packet that it held has arrived.
    """
    then = signals.use(from_s / 2, from_s)
    now = signals.use(until_s + 2 * signals.path.rtt_s, until_s + 2 * signals.path.rtt_s + 1)
    return held(now >= KEPT * then, f"{now:.2f} of the rate, {then:.2f} before")
