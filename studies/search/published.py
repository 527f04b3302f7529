"""What was published of SEARCH in QUIC: the figures of `published.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("published.toml")


@dataclass(frozen=True)
class SearchRuns:
    """How many runs of a slow start the source of SEARCH in QUIC has, why it leaves some out, and how
    many of those that are left reach so many MB.
    """

    all: int
    first_round_trip: int
    medium: int
    clean: int
    reaching: dict[int, int]


@dataclass(frozen=True)
class Search:
    """What was published of SEARCH in QUIC; shares in percent, `runs` by slow start."""

    source: str
    threshold_s: float
    loss_first: float
    exit_first: float
    exit_a_round_trip_before: float
    saved_s: float
    saved_beyond_mb: int
    alike: float
    sooner: float
    later: float
    beta_cut: float
    runs: dict[str, SearchRuns]


def load() -> Search:
    values = tomllib.loads(FILE.read_text())
    runs = {name: SearchRuns(**(one | {"reaching": _by_mb(one)})) for name, one in values.pop("runs").items()}
    return Search(runs=runs, **values)


def _by_mb(table: dict[str, Any]) -> dict[int, int]:
    return {int(size): count for size, count in table["reaching"].items()}
