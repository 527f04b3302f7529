"""Published values on SEARCH in QUIC: the types of `published.toml`."""

from __future__ import annotations

from bentpipe.study.published import Table, read


class PublishedCounts(Table, frozen=True):
    """How many runs of a slow start the source of SEARCH in QUIC has, why it leaves some out, and how
    many of those that are left reach the given MB.
    """

    all: int
    first_round_trip: int
    medium: int
    clean: int
    reaching: dict[str, int]


class Search(Table, frozen=True):
    """Published values on SEARCH in QUIC; shares in percent, `runs` by slow start."""

    source: str
    threshold_s: float
    loss_first: float
    exit_first: float
    exit_a_round_trip_before: float
    saved_s: float
    saved_beyond_mb: int
    equal: float
    sooner: float
    later: float
    beta_cut: float
    runs: dict[str, PublishedCounts]


def load() -> Search:
    return read(__file__, Search)
