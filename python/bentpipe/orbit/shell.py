"""Shells of satellites in circular orbits, after J. G. Walker, Satellite constellations, 1984.

A shell `T/P/F` has T satellites in P planes, whose ascending nodes are evenly spread over 360 degrees
(delta), or over 180 degrees (star). Satellites of a plane are evenly spread over it, and those of each next
plane are ahead by F times 360/T degrees. Orbits are those of two bodies: nothing makes planes turn, which in
reality turn by some degrees in a day. At time 0 the first plane's node is at longitude 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bentpipe.errors import UsageError
from bentpipe.orbit.ground import EQUATOR_KM, Positions

GRAVITY_KM3_S2 = 398600.4418  # WGS84, as is the rotation
ROTATION_RAD_S = 7.292115e-5
_SHELL = re.compile(r"(\d+)/(\d+)/([\d.]+) ?km/([\d.]+) ?deg(/star)?")
_HINT = "write TOTAL/PLANES/ALTITUDE/INCLINATION, as in --shell 1584/72/550km/53deg"
_LOWEST_KM, _HIGHEST_KM = 160.0, 36000.0
_MOST = 100_000  # satellites


@dataclass(frozen=True)
class Shell:
    """A shell: its altitude is above the equator, and `phasing` is Walker's F."""

    total: int
    planes: int
    altitude_km: float
    inclination: float
    phasing: int = 0
    is_star: bool = False

    @classmethod
    def parse(cls, text: str, phasing: int = 0) -> Shell:
        """`1584/72/550km/53deg`, with `/star` behind it if nodes are spread over half of the equator."""
        match = _SHELL.fullmatch(text.strip())
        try:
            altitude, inclination = (float(match[3]), float(match[4])) if match else (0.0, 0.0)
        except ValueError:
            match = None
        if match is None:
            raise UsageError(f'--shell: "{text}" is no shell', _HINT)
        total, planes = int(match[1]), int(match[2])
        if not 0 < total <= _MOST or planes == 0 or total % planes:
            raise UsageError(
                f"--shell: {text}: {total} satellites do not fill {planes} planes evenly",
                f"the total is a multiple of the planes, from 1 to {_MOST}",
            )
        if not _LOWEST_KM <= altitude <= _HIGHEST_KM:
            raise UsageError(
                f"--shell: {text}: no orbit stays at {altitude:g} km",
                f"write an altitude from {_LOWEST_KM:g}km to {_HIGHEST_KM:g}km",
            )
        if not 0 <= inclination <= 180:
            raise UsageError(f"--shell: {text}: an inclination is from 0deg to 180deg", _HINT)
        if not 0 <= phasing < planes:
            raise UsageError(
                f"--phasing: {phasing} is not from 0 to {planes - 1}, one less than the planes of {text}",
                "write Walker's F, as in --phasing 1",
            )
        return cls(total, planes, altitude, inclination, phasing, match[5] is not None)

    def __str__(self) -> str:
        star = "/star" if self.is_star else ""
        shell = f"{self.total}/{self.planes}/{self.altitude_km:g}km/{self.inclination:g}deg{star}"
        return f"{shell}, phasing {self.phasing}"

    @property
    def per_plane(self) -> int:
        return self.total // self.planes

    @property
    def names(self) -> Sequence[str]:
        """Plane and place in it, both from 1 on."""
        return [
            f"{number // self.per_plane + 1}-{number % self.per_plane + 1}" for number in range(self.total)
        ]

    @property
    def links(self) -> Sequence[tuple[int, int]]:
        """The grid: each satellite with the next of its plane, and with its neighbour of the next plane. Of a
        star, the last plane and the first, which pass each other, have none.
        """
        inside = [
            (plane * self.per_plane + place, plane * self.per_plane + (place + 1) % self.per_plane)
            for plane in range(self.planes)
            for place in range(self.per_plane)
            if self.per_plane > 1
        ]
        across = []
        for plane in range(self.planes if self.planes > 2 and not self.is_star else self.planes - 1):
            # Once around, a plane is ahead of itself by F places.
            ahead = self.phasing if plane == self.planes - 1 else 0
            across += [
                (
                    plane * self.per_plane + place,
                    (plane + 1) % self.planes * self.per_plane + (place + ahead) % self.per_plane,
                )
                for place in range(self.per_plane)
            ]
        return inside + across

    @cached_property
    def _nodes_and_phases(self) -> tuple[Positions, Positions]:
        number = np.arange(self.total)
        plane, place = number // self.per_plane, number % self.per_plane
        around = math.pi if self.is_star else 2 * math.pi
        phases = place / self.per_plane + self.phasing * plane / self.total
        return around * plane / self.planes, 2 * math.pi * phases

    def positions(self, seconds: float) -> Positions:
        nodes, phases = self._nodes_and_phases
        radius, tilt = EQUATOR_KM + self.altitude_km, math.radians(self.inclination)
        along = phases + math.sqrt(GRAVITY_KM3_S2 / radius**3) * seconds
        longitude = nodes - ROTATION_RAD_S * seconds
        x, y = np.cos(along), np.sin(along) * math.cos(tilt)
        return radius * np.stack(
            [
                x * np.cos(longitude) - y * np.sin(longitude),
                x * np.sin(longitude) + y * np.cos(longitude),
                np.sin(along) * math.sin(tilt),
            ],
            axis=-1,
        )


@dataclass(frozen=True)
class Shells:
    """Several shells, their satellites one after the other. No link leads from one to another."""

    shells: tuple[Shell, ...]

    @property
    def names(self) -> Sequence[str]:
        if len(self.shells) == 1:
            return self.shells[0].names
        each = enumerate(self.shells, 1)
        return [f"{number}-{name}" for number, shell in each for name in shell.names]

    @property
    def links(self) -> Sequence[tuple[int, int]]:
        before, found = 0, []
        for shell in self.shells:
            found += [(one + before, other + before) for one, other in shell.links]
            before += shell.total
        return found

    def positions(self, seconds: float) -> Positions:
        return np.concatenate([shell.positions(seconds) for shell in self.shells])

    def __str__(self) -> str:
        return "; ".join(map(str, self.shells))
