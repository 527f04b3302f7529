"""The rate of Reno under random losses: the formula, and an ideal sender to compare stacks with.

The sender keeps RFC 9002 sections 6 and 7 and has no other traits: no pacing, and a round trip that is always
the same. Windows and sizes are in packets, times in round trips.
"""

from __future__ import annotations

import heapq
import math
import random

INITIAL = 10  # packets, RFC 9002 section 7.2
MINIMUM = 2  # packets, the same section
HALF = 0.5  # of the window is left after a loss, section 7.3.2
REORDERING = 3  # packets that are acknowledged behind one that counts as lost, RFC 9002 section 6.1.1
WAIT = 9 / 8  # round trips after which one with an acknowledged packet behind it is lost, section 6.1.2


def formula(loss: float) -> float:
    """Packets per round trip by Mathis et al. 1997: one packet more in each round trip, half at each loss,
    losses evenly spaced.
    """
    return math.sqrt(3 / 2 / loss)


class Sender:
    """One transfer, with `kept` of the window left after a loss. `rate` runs it."""

    def __init__(self, loss: float, seed: int, kept: float = HALF) -> None:
        self._loss = loss
        self._kept = kept
        self._random = random.Random(seed)
        self._now = 0.0
        self._window: float = INITIAL
        self._threshold = math.inf
        self._recovery = -1.0  # when the last recovery period began
        self._sent: dict[int, float] = {}  # packet in flight → when it was sent
        self._events: list[
            tuple[float, int]
        ] = []  # (time, packet that is acknowledged, or -1: look for losses)
        self._next = 0
        self._largest = -1  # acknowledged

    def rate(self, packets: int) -> float:
        """Packets per round trip over a transfer of so many, without those that were lost."""
        delivered = 0
        while delivered < packets:
            self._send()
            # Without an event everything in flight was lost: a probe goes out after a round trip and is
            # acknowledged one later (RFC 9002 section 6.2).
            self._now, packet = (
                heapq.heappop(self._events) if self._events else (self._now + 1, self._probe())
            )
            if packet >= 0 and packet in self._sent:
                delivered += 1
                self._acknowledged(packet)
            self._detect()
        return packets / self._now

    def _send(self) -> None:
        while len(self._sent) + 1 <= self._window:
            self._sent[self._next] = self._now
            if self._random.random() >= self._loss:
                heapq.heappush(self._events, (self._now + 1, self._next))
            self._next += 1

    def _probe(self) -> int:
        """Send a packet beyond the window, and again until one arrives; none is acknowledged at once."""
        self._sent[self._next] = self._now + 1
        heapq.heappush(self._events, (self._now + 2, self._next))
        self._next += 1
        return -1

    def _acknowledged(self, packet: int) -> None:
        self._largest = max(self._largest, packet)
        if self._sent.pop(packet) <= self._recovery:
            return
        self._window += 1 if self._window < self._threshold else 1 / self._window

    def _detect(self) -> None:
        """Take as lost what RFC 9002 section 6.1 does; one window is halved once."""
        while self._sent:
            packet, sent = next(iter(self._sent.items()))
            if packet > self._largest:
                return
            if packet > self._largest - REORDERING and self._now < sent + WAIT:
                heapq.heappush(self._events, (sent + WAIT, -1))
                return
            del self._sent[packet]
            if sent > self._recovery:
                self._recovery = self._now
                self._window = self._threshold = max(self._window * self._kept, MINIMUM)
