"""A sender that is made up for tests: a BBR in a few lines over a link with a deep queue.

Each of its constants can be changed, to make it break a rule of the draft.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from bbr_cases.signals import PathFacts, Signals, WirePackets

SIZE = 1250.0
PATH = PathFacts(10e6, 0.05)


@dataclass(frozen=True)
class Habits:
    """What the sender does; the defaults are the draft's."""

    full_rounds: int = 3  # in STARTUP, at the link's rate
    drain_gain: float = 0.5
    drain_to: float = 1.0  # BDP
    up_rounds: int = 3
    down_gain: float = 0.9
    down_to: float = 1.0
    cruise: float = 1.0
    probe_rtt_s: float = 5.0
    depth: float = 0.5
    probe_lasts_s: float = 0.25
    window: float = 2.0  # BDP
    up_every_s: float = 2.4


@dataclass
class Sender:
    """A sender over a link."""

    habits: Habits
    path: PathFacts
    sent: list[float] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)
    flying: deque[float] = field(default_factory=deque)  # when each is acknowledged
    state: str = "startup"
    since_s: float = 0.0
    round_begin_s: float = 0.0
    rounds: int = 0  # in this state

    def run(self, seconds: float) -> Signals:
        """What the wire shows of it."""
        now = 0.0
        while now < seconds:
            self._settle(now)
            gain = self._gain(now)
            if len(self.flying) * SIZE >= self._window() * self.path.bdp_bytes:
                now = self.flying[0]
                continue
            self._send(now)
            now += SIZE * 8 / (gain * self.path.rate_bps)
        return signals(np.array(self.sent), np.array(self.arrived), self.path)

    def _send(self, now: float) -> None:
        free = self.arrived[-1] if self.arrived else 0.0
        came = max(free, now + self.path.rtt_s / 2) + SIZE * 8 / self.path.rate_bps
        self.sent.append(now)
        self.arrived.append(came)
        self.flying.append(came + self.path.rtt_s / 2)

    def _settle(self, now: float) -> None:
        while self.flying and self.flying[0] <= now:
            acked = self.flying.popleft()
            index = len(self.sent) - len(self.flying) - 1
            if self.sent[index] >= self.round_begin_s:
                self.rounds += 1
                self.round_begin_s = acked

    def _enter(self, state: str, now: float) -> None:
        self.state, self.since_s, self.rounds, self.round_begin_s = state, now, 0, now

    def _window(self) -> float:
        if self.state == "probe_rtt":
            return self.habits.depth
        return {"startup": 2.0, "up": self.habits.window + 0.25}.get(self.state, self.habits.window)

    def _gain(self, now: float) -> float:
        """The pace, after a change of state if one is due."""
        mine, spent, bdps = self.habits, now - self.since_s, self._bdps()
        if self.state == "startup":
            grown = min(0.05 * 2 ** (now / self.path.rtt_s), 2.77)
            if grown < 1.25:
                self.rounds = 0
            if self.rounds > mine.full_rounds:
                self._enter("drain", now)
            return grown
        if self.state == "drain" and bdps <= mine.drain_to:
            self._enter("cruise", now)
        elif self.state == "cruise" and self._probe_number(now) > self._probe_number(self.since_s):
            self._enter("probe_rtt", now)
        elif self.state == "cruise" and spent > mine.up_every_s:
            self._enter("up", now)
        elif self.state == "up" and self.rounds >= mine.up_rounds:
            self._enter("down", now)
        elif (self.state == "down" and bdps <= mine.down_to) or (
            self.state == "probe_rtt" and spent > mine.probe_lasts_s
        ):
            self._enter("cruise", now)
        gains = {"drain": mine.drain_gain, "up": 1.25, "down": mine.down_gain}
        return gains.get(self.state, mine.cruise)

    def _bdps(self) -> float:
        return len(self.flying) * SIZE / self.path.bdp_bytes

    def _probe_number(self, now: float) -> int:
        return int(now / self.habits.probe_rtt_s)


def bbr(seconds: float = 20.0, **habits: float) -> Signals:
    """The signals of a sender with these habits in place of the draft's."""
    return Sender(Habits(**habits), PATH).run(seconds)  # type: ignore[arg-type]


def signals(
    sent: np.ndarray, arrived: np.ndarray, path: PathFacts, dropped: np.ndarray | None = None
) -> Signals:
    """Signals of packets that are acknowledged half a round trip after they arrive, or lost after one."""
    gone = np.zeros(len(sent), bool) if dropped is None else dropped
    packets = WirePackets(
        sent_s=sent,
        arrived_s=np.where(gone, np.nan, arrived),
        acked_s=np.where(gone, np.nan, arrived + path.rtt_s / 2),
        lost_s=np.where(gone, arrived + path.rtt_s / 2, np.nan),
        size=np.full(len(sent), SIZE),
        dropped=gone,
    )
    return Signals(packets, path)


def paced(
    pace: Callable[[float], float],
    seconds: float,
    path: PathFacts = PATH,
    share: Callable[[float], float] = lambda _: 1.0,
    lost: Callable[[float], float] = lambda _: 0.0,
) -> Signals:
    """A sender with a pace over time, and a link that has a share of its rate over time.

    A pace of 0 is silence. `lost`: the share that is lost of what is sent at a time.
    """
    now, free = 0.0, 0.0
    sent, arrived = [], []
    while now < seconds:
        if (gain := pace(now)) <= 0:
            now += path.rtt_s / 50
            continue
        begin = max(free, now + path.rtt_s / 2)
        free = begin + SIZE * 8 / (path.rate_bps * share(begin))
        sent.append(now)
        arrived.append(free)
        now += SIZE * 8 / (gain * path.rate_bps)
    due = np.cumsum([lost(one) for one in sent]) + 1e-9
    gone = np.diff(np.floor(due), prepend=0.0) > 0
    return signals(np.array(sent), np.array(arrived), path, gone)


def grown(time_s: float, path: PathFacts = PATH, begin: float = 0.05) -> float:
    """A pace that doubles with each round trip, up to the link's."""
    return min(begin * 2 ** (time_s / path.rtt_s), 1.0) if math.isfinite(time_s) else 1.0
