"""Published values on TCP proxies and on losses over a satellite: the types of `published.toml`."""

from __future__ import annotations

from bentpipe.study.published import Table, read


class Objectives(Table, frozen=True):
    """Objectives for the completion of a file over one path: megabytes → seconds."""

    place: str
    times_s: dict[str, float]

    def of(self, megabytes: int) -> float | None:
        return self.times_s.get(str(megabytes))


class LossRow(Table, frozen=True):
    """A column of table II."""

    loss: float
    time_s: float
    goodput_mbps: float


class Losses(Table, frozen=True):
    """Table II."""

    place: str
    bytes: int
    rows: tuple[LossRow, ...]


class Kuhn(Table, frozen=True):
    """All that the page compares with."""

    source: str
    initial_window_gain_s: float
    objectives: dict[str, Objectives]
    losses: Losses


def load() -> Kuhn:
    return read(__file__, Kuhn)
