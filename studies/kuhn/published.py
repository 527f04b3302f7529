"""What was published of TCP proxies and of losses over a satellite: the figures of `published.toml`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bentpipe import strict

FILE = Path(__file__).with_name("published.toml")


class Objectives(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How soon a file should be there over one path: megabytes → seconds."""

    place: str
    times_s: dict[str, float]

    def of(self, megabytes: int) -> float | None:
        return self.times_s.get(str(megabytes))


class LossRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of table II."""

    loss: float
    time_s: float
    goodput_mbps: float


class Losses(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Table II."""

    place: str
    bytes: int
    rows: tuple[LossRow, ...]


class Kuhn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that the page compares with."""

    source: str
    initial_window_gain_s: float
    objectives: dict[str, Objectives]
    losses: Losses


def load() -> Kuhn:
    return strict.read(FILE, Kuhn)
