"""The published figures of `published.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("published.toml")
Pair = tuple[str, str]  # client, server


@dataclass(frozen=True)
class Overview:
    """What was published of a scenario, over all pairs: Mbit/s and percent."""

    source: str
    mean: float
    mean_efficiency: float
    max: float
    max_efficiency: float
    failed: float
    timeout: float
    real_link: bool = False


@dataclass(frozen=True)
class PublishedStack:
    """What was published of a stack; texts are empty where nothing is known for sure."""

    version: str
    congestion_control: str


@dataclass(frozen=True)
class Pairs:
    """Mean goodput of pairs."""

    source: str
    bps: dict[Pair, float]

    def of_server(self, server: str) -> dict[str, float]:
        """Client → mean goodput."""
        return {client: bps for (client, other), bps in self.bps.items() if other == server}

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(sorted({server for _, server in self.bps}))


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


@dataclass(frozen=True)
class PepScenario:
    """What was published of proxies over one path: bytes as multiples of those without, seconds."""

    most: float
    most_within_s: float
    slow_start: str
    by_end: str
    response_start_s: float
    response_start_proxies_s: float


@dataclass(frozen=True)
class Pep:
    """What was published of QUIC proxies around a satellite hop."""

    source: str
    iterations: int
    satellite_ms: float
    scenarios: dict[str, PepScenario]


@dataclass(frozen=True)
class Published:
    """All of it; scenarios by name, in the order of the source's table."""

    sources: dict[str, str]
    scenarios: dict[str, Overview]
    stacks: dict[str, PublishedStack]
    pairs: dict[str, Pairs]
    search: Search
    pep: Pep


def load() -> Published:
    values = tomllib.loads(FILE.read_text())
    return Published(
        sources=values["sources"],
        scenarios={name: Overview(**one) for name, one in values["scenarios"].items()},
        stacks={name: PublishedStack(**one) for name, one in values["stacks"].items()},
        pairs={name: _pairs(dict(one)) for name, one in values["pairs"].items()},
        search=_search(dict(values["search"])),
        pep=_pep(dict(values["pep"])),
    )


def _pairs(table: dict[str, Any]) -> Pairs:
    source = table.pop("source")
    bps = {(client, server): 1000.0 * kbps for client, row in table.items() for server, kbps in row.items()}
    return Pairs(source, bps)


def _search(table: dict[str, Any]) -> Search:
    runs = {name: SearchRuns(**(one | {"reaching": _by_mb(one)})) for name, one in table.pop("runs").items()}
    return Search(runs=runs, **table)


def _pep(table: dict[str, Any]) -> Pep:
    scenarios = {name: PepScenario(**one) for name, one in table.pop("scenarios").items()}
    return Pep(scenarios=scenarios, **table)


def _by_mb(table: dict[str, Any]) -> dict[int, int]:
    return {int(size): count for size, count in table["reaching"].items()}
