"""Ways over links between satellites."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import numpy as np

from bentpipe.orbit.ground import EQUATOR_KM, Positions

_ATMOSPHERE_KM = 80.0  # a link does not lead through what is below


class SatelliteGrid:
    """The links of a constellation."""

    def __init__(self, links: Sequence[tuple[int, int]]) -> None:
        self._neighbours: dict[int, list[int]] = {}
        for one, other in links:
            self._neighbours.setdefault(one, []).append(other)
            self._neighbours.setdefault(other, []).append(one)

    def shortest(self, positions: Positions, first: int, ends: Mapping[int, float]) -> tuple[int, ...] | None:
        """The satellites of the shortest way from `first` to one of `ends`, each of which adds a length of
        its own, by Dijkstra's algorithm; None if there is none.
        """
        queue: list[tuple[float, tuple[int, ...], bool]] = [(0.0, (first,), False)]
        done: set[int] = set()
        while queue:
            length, way, is_whole = heapq.heappop(queue)
            if is_whole:
                return way
            last = way[-1]
            if last in done:
                continue
            done.add(last)
            if last in ends:
                heapq.heappush(queue, (length + ends[last], way, True))
            for following in self._neighbours.get(last, ()):
                if following not in done and is_clear(positions[last], positions[following]):
                    step = float(np.linalg.norm(positions[last] - positions[following]))
                    heapq.heappush(queue, (length + step, (*way, following), False))
        return None


def is_clear(one: Positions, other: Positions) -> bool:
    """Whether the straight line between two satellites stays above the atmosphere."""
    along = other - one
    squared = float(along @ along)
    nearest = min(1.0, max(0.0, -float(one @ along) / squared)) if squared else 0.0
    return float(np.linalg.norm(one + nearest * along)) >= EQUATOR_KM + _ATMOSPHERE_KM
