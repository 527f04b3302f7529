"""The interface of constellations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bentpipe.orbit.ground import Positions


class Constellation(Protocol):
    """Satellites, each with a number from 0 on."""

    @property
    def names(self) -> Sequence[str]:
        """The name of each satellite."""

    @property
    def links(self) -> Sequence[tuple[int, int]]:
        """The pairs of satellites that have a link between them."""

    def positions(self, seconds: float) -> Positions:
        """Where each satellite is, seconds after the beginning; not a number if that is unknown."""

    def __str__(self) -> str:
        """Its description, for people."""
