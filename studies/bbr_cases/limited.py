"""Senders with less to send than the path carries: appendices A.2, A.7 and A.11 of draft-ietf-ccwg-bbr-06.

STARTUP and PROBE_BW look the same while the application limits the rate. They differ as soon as there is
enough to send: in STARTUP the rate doubles in a round trip, in PROBE_BW it waits for a probe.
"""

from __future__ import annotations

import numpy as np

from .judgement import Judgement, held, untold
from .signals import Signals

DOUBLINGS = 8  # round trips in which STARTUP reaches the rate from a fifth of it, in O(log) of them
FULL = 0.9  # of the rate
DIP = 0.75  # BDP: less is in flight in PROBE_RTT alone (section 5.3.4.1: half of it)
WITHIN_S = 1.0  # of the restart: a PROBE_RTT that is due comes with the first acknowledgement
LOSSY_S = (0.5, 2.0)  # when packets are lost
IDLE_S = 5.0  # the interval of PROBE_RTT


def reach_s(signals: Signals, data_bytes: float) -> tuple[float, float | None]:
    """When the rest of the data begins, behind its first bytes; how long it takes to the path's rate."""
    begin = float(signals.sent.time_s[np.searchsorted(signals.sent.total[1:], data_bytes)])
    times = signals.times(begin, signals.end_s - signals.path.rtt_s)
    fast = np.flatnonzero(signals.paces(times + signals.path.rtt_s / 2) >= FULL)
    return begin, float(times[fast[0]]) - begin if len(fast) else None


def stays_in_startup(signals: Signals, data_bytes: float) -> Judgement:
    """A.7: limited by the application and without loss, it is still in STARTUP afterwards."""
    _, took = reach_s(signals, data_bytes)
    if took is None:
        return held(False, "never comes to the rate")
    rounds = took / signals.path.rtt_s
    return held(rounds <= DOUBLINGS, f"at the rate {rounds:.0f} round trips after the limit")


def leaves_on_loss(signals: Signals, data_bytes: float) -> Judgement:
    """A.2: limited by the application and with loss, it is not in STARTUP afterwards."""
    begin, took = reach_s(signals, data_bytes)
    lost = signals.loss(*LOSSY_S)
    rounds = (signals.end_s - begin if took is None else took) / signals.path.rtt_s
    when = f"{'not ' if took is None else ''}at the rate {rounds:.0f} round trips after the limit"
    seen = f"{when}, with {100 * lost:.0f} % lost in it"
    return held(rounds > DOUBLINGS, seen)


def skips_probe_rtt(signals: Signals) -> Judgement:
    """A.11: after a pause longer than 5 s it does not probe the RTT."""
    sent = signals.sent.time_s
    gaps = np.diff(sent)
    longest = int(gaps.argmax())
    if gaps[longest] < IDLE_S:
        return untold("no pause")
    again = float(sent[longest + 1])
    rtt = signals.path.rtt_s
    flight = signals.bdps(signals.times(again, min(again + WITHIN_S, signals.end_s - rtt)))
    full = np.flatnonzero(flight >= 1.0)
    if not len(full):
        return untold(f"up to {float(flight.max()):.2f} BDP in flight in {WITHIN_S:.0f} s: it fills no pipe")
    least = float(flight[full[0] :].min())
    return held(least > DIP, f"at least {least:.2f} BDP in flight after the pause")
