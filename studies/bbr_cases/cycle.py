"""PROBE_BW and PROBE_RTT: appendices A.5, A.8, A.10 and A.21 of draft-ietf-ccwg-bbr-06.

Judged are phases that the pace shows. Where the window limits a sender and not its pace, none shows.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .judgement import Judgement, failed, held, untold
from .signals import Signals, spans
from .startup import OFF_BY, ROUNDS

RAISED = 1.1  # of its usual pace: between those of CRUISE and UP, 1 and 1.25 (sections 5.3.3.2, 5.3.3.4)
PEAK = 1.15  # of the rate: a rise that stays below is a burst, and not UP with 1.25
LOWERED = 0.97  # between those of CRUISE and DOWN: 1 and 0.9
DOWN = (0.85, 0.95)  # section 5.3.3.1: 0.90
BACK = 0.95  # of the rate, in CRUISE
NEAR_BDP = 1.15  # of what is in flight at the end of DOWN
SETTLED_S = 2.0  # STARTUP and DRAIN are over
DIP = 0.75  # BDP: less is in flight in PROBE_RTT alone
DEPTH = (0.35, 0.65)  # section 5.3.4.1: half of the BDP
INTERVAL_S = (5.0, 6.5)  # the same: every 5 s, and what the probe itself takes
CRUISING = 1.3  # BDP: more is in flight in UP and DOWN, or where the window limits
LASTS_S = 0.2  # the same
LOSS = 0.02  # section 2.8: LossThresh
STORM = 0.2  # of all packets: a loss that no phase explains


@dataclass(frozen=True)
class ProbeUp:
    """A phase of raised pace, and when the pace was lowered after it."""

    begin_s: float
    end_s: float


def probes_up(signals: Signals) -> list[ProbeUp]:
    """The phases of raised pace with a full pipe: what follows PROBE_RTT or silence refills it."""
    rtt = signals.path.rtt_s
    times = signals.times(SETTLED_S, signals.end_s - 4 * rtt)
    paces = signals.paces(times)
    found = []
    for begin, last in spans(times, paces > RAISED * np.median(paces), rtt / 2):
        slow = np.flatnonzero((times > last) & (paces < LOWERED))
        full = signals.bdps(signals.times(begin - 2 * rtt, begin)).min() > DIP
        peak = float(paces[(times >= begin) & (times <= last)].max())
        if full and len(slow) and peak >= PEAK:
            found.append(ProbeUp(begin, float(times[slow[0]])))
    return found


def up_to_plateau(signals: Signals) -> Judgement:
    """A.5: UP lasts for the 3 rounds of a plateau, and a lower pace follows."""
    found = probes_up(signals)
    if len(found) < 2:
        return _hidden(signals)
    rounds = statistics.median(signals.rounds(one.begin_s, one.end_s) for one in found)
    seen = f"UP lasts {rounds:.1f} rounds, median of {len(found)}"
    return held(abs(rounds - ROUNDS) <= OFF_BY, seen)


def down_to_bdp(signals: Signals) -> Judgement:
    """A.8: DOWN is paced at 0.9 of the rate until a BDP is in flight, and CRUISE at the rate follows."""
    found = probes_up(signals)
    if len(found) < 2:
        return _hidden(signals)
    seen = [_down(signals, one) for one in found]
    gain, bdps, cruise = (statistics.median(values) for values in zip(*seen, strict=True))
    text = f"pace {gain:.2f} until {bdps:.2f} BDP are in flight, then {cruise:.2f}"
    return held(DOWN[0] <= gain <= DOWN[1] and bdps <= NEAR_BDP and cruise >= BACK, text)


def _down(signals: Signals, up: ProbeUp) -> tuple[float, float, float]:
    """Pace of DOWN, BDPs in flight at its end, pace of the ten round trips that follow."""
    rtt = signals.path.rtt_s
    times = signals.times(up.end_s, min(up.end_s + 20 * rtt, signals.end_s - rtt))
    done = np.flatnonzero((signals.paces(times) >= LOWERED) | (signals.bdps(times) <= 1.0))
    end = max(float(times[done[0]]) if len(done) else float(times[-1]), up.end_s + rtt / 2)
    return signals.pace(up.end_s, end), float(signals.bdps(end)), signals.pace(end + rtt, end + 11 * rtt)


def _hidden(signals: Signals) -> Judgement:
    flight = float(np.median(signals.bdps(signals.times(SETTLED_S, signals.end_s))))
    return untold(f"no phase shows: {flight:.1f} BDP are in flight, and the pace is the link's")


def probe_rtt(signals: Signals) -> Judgement:
    """A.10: every 5 s half of a BDP is in flight, for 200 ms and a round trip, and the rate comes back."""
    rtt = signals.path.rtt_s
    times = signals.times(SETTLED_S, signals.end_s - rtt)
    found = spans(times, signals.bdps(times) < DIP, rtt / 2)
    found = [one for one in found if one[1] - one[0] >= LASTS_S / 2]
    if len(found) < 2:
        return failed(f"{len(found)} PROBE_RTT in {signals.end_s:.0f} s")
    apart = statistics.median(later[0] - former[0] for former, later in pairwise(found))
    depth = statistics.median(
        float(np.median(signals.bdps(signals.times(begin + rtt / 2, end)))) for begin, end in found
    )
    lasts = statistics.median(end - begin for begin, end in found)
    text = f"every {apart:.1f} s to {depth:.2f} BDP for {1e3 * lasts:.0f} ms"
    good = INTERVAL_S[0] <= apart <= INTERVAL_S[1] and DEPTH[0] <= depth <= DEPTH[1]
    return held(good and lasts >= max(LASTS_S, rtt) - rtt / 8, text)


def loss_ends_up(signals: Signals) -> Judgement:
    """A.21: in front of a short queue, the pace is below the rate in the round after losses are detected."""
    rtt = signals.path.rtt_s
    if (share := signals.loss(SETTLED_S, signals.end_s)) > STORM:
        return failed(f"{100 * share:.0f} % of its packets are lost throughout")
    gone = signals.packets.lost_s[signals.packets.dropped]
    gone = np.sort(gone[np.isfinite(gone) & (gone > SETTLED_S) & (gone < signals.end_s - 3 * rtt)])
    found = [begin for begin, _ in spans(gone, gone > 0, 4 * rtt)]
    high = [begin for begin in found if signals.loss(begin - 2 * rtt, begin) > LOSS]
    if not high:
        return untold(f"no probe loses more than {100 * LOSS:.0f} % in {signals.end_s:.0f} s")
    pace = statistics.median(signals.pace(begin + rtt / 4, begin + 1.25 * rtt) for begin in high)
    return held(pace < LOWERED, f"pace {pace:.2f} after a loss, median of {len(high)}")


def fade(signals: Signals) -> float | None:
    """By how much the pace of CRUISE falls in ten round trips, as a share of it; None if no phase shows.

    From ten round trips behind a raised or a low pace, when DOWN is over, to the next such pace.
    """
    rtt = signals.path.rtt_s
    times = signals.times(SETTLED_S, signals.end_s - rtt)
    paces = signals.paces(times)
    quiet = (paces > DIP) & (paces < 1.05) & (signals.bdps(times) <= CRUISING)
    found = [(begin + 10 * rtt, end) for begin, end in spans(times, quiet, rtt / 4) if end - begin > 20 * rtt]
    if not found:
        return None
    falls = [
        (1 - signals.pace(end - 2 * rtt, end) / signals.pace(begin, begin + 2 * rtt))
        * 10 * rtt / (end - begin - 2 * rtt)
        for begin, end in found
    ]  # fmt: skip
    return statistics.median(falls)
