"""The satellites of a constellation that a terminal and gateways see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bentpipe.orbit.constellation import Constellation
from bentpipe.orbit.ground import Place, Positions
from bentpipe.orbit.routes import SatelliteGrid, is_clear

SPEED_KM_S = 299792.458
_LONGEST_S = 1800.0  # that is looked ahead for the longest visibility


@dataclass(frozen=True)
class Route:
    """A way from the terminal to a gateway: satellites in this order, one of them without links between
    satellites.
    """

    satellites: tuple[int, ...]
    gateway: int


@dataclass(frozen=True)
class Masks:
    """The least elevations in degrees at which a terminal and a gateway use a satellite."""

    terminal: float
    gateway: float


class Sky:
    """A constellation as seen from a terminal and from gateways."""

    def __init__(
        self,
        constellation: Constellation,
        terminal: Place,
        gateways: Sequence[Place],
        masks: Masks,
        isl: bool,
    ) -> None:
        self._constellation = constellation
        self._terminal, self._gateways, self._masks = terminal, gateways, masks
        self._grid = SatelliteGrid(constellation.links) if isl else None

    def highest(self, seconds: float) -> Route | None:
        """By the satellite that stands highest at the terminal; of equal ones, by the first."""
        positions = self._constellation.positions(seconds)
        candidates = self._candidates(positions)
        if not candidates.any():
            return None
        elevations = np.where(candidates, self._terminal.elevations(positions), -np.inf)
        return self._by(positions, int(np.argmax(elevations)))

    def longest(self, seconds: float, step_s: float) -> Route | None:
        """The way that serves for longest, looked at in such steps, of those by each satellite and then the
        nearest gateway; of equal ones, by the satellite that stands highest.
        """
        positions = self._constellation.positions(seconds)
        by_each = (self._by(positions, int(one)) for one in np.flatnonzero(self._candidates(positions)))
        left = [way for way in by_each if way is not None]
        ahead = 0.0
        while ahead < _LONGEST_S and len(left) > 1:
            ahead += step_s
            later = self._constellation.positions(seconds + ahead)
            still = [way for way in left if self._serves(later, way)]
            if not still:
                break
            left = still
        elevations = self._terminal.elevations(positions)
        return max(left, key=lambda way: float(elevations[way.satellites[0]]), default=None)

    def serves(self, seconds: float, way: Route) -> bool:
        """Whether both ends of a connection are above their masks, and the Earth is in the way of none of its
        links between satellites.
        """
        return self._serves(self._constellation.positions(seconds), way)

    def _serves(self, positions: Positions, way: Route) -> bool:
        first, last = positions[way.satellites[0]], positions[way.satellites[-1]]
        gateway = self._gateways[way.gateway]
        return bool(
            self._terminal.elevations(first) >= self._masks.terminal
            and gateway.elevations(last) >= self._masks.gateway
            and all(is_clear(positions[one], positions[other]) for one, other in pairwise(way.satellites))
        )

    def delay_s(self, seconds: float, way: Route) -> float:
        """The time that light takes over a connection."""
        positions = self._constellation.positions(seconds)
        first, last = positions[way.satellites[0]], positions[way.satellites[-1]]
        between = sum(
            float(np.linalg.norm(positions[one] - positions[other]))
            for one, other in pairwise(way.satellites)
        )
        ends = self._terminal.ranges(first) + self._gateways[way.gateway].ranges(last)
        return (float(ends) + between) / SPEED_KM_S

    def seen(self, seconds: float, satellite: int) -> tuple[int, float]:
        """How many satellites the terminal can use, and the elevation of one in degrees."""
        positions = self._constellation.positions(seconds)
        elevation = float(self._terminal.elevations(positions[satellite]))
        return int(self._candidates(positions).sum()), elevation

    def _candidates(self, positions: Positions) -> NDArray[np.bool_]:
        """The satellites that the terminal sees and, without links between satellites, a gateway, too."""
        seen = self._terminal.elevations(positions) >= self._masks.terminal
        if self._grid is None:
            seen &= np.any([self._sees(gateway, positions) for gateway in self._gateways], axis=0)
        return np.asarray(seen)

    def _sees(self, gateway: Place, positions: Positions) -> NDArray[np.bool_]:
        return np.asarray(gateway.elevations(positions) >= self._masks.gateway)

    def _by(self, positions: Positions, satellite: int) -> Route | None:
        """By way of that satellite and the nearest gateway: the one that gives the shortest way."""
        ranges = np.array(
            [
                np.where(self._sees(gateway, positions), gateway.ranges(positions), np.inf)
                for gateway in self._gateways
            ]
        )
        gateways, nearest = ranges.argmin(axis=0), ranges.min(axis=0)
        if self._grid is None:
            return Route((satellite,), int(gateways[satellite]))
        ends = {int(number): float(nearest[number]) for number in np.flatnonzero(np.isfinite(nearest))}
        way = self._grid.shortest(positions, satellite, ends)
        return Route(way, int(gateways[way[-1]])) if way else None
