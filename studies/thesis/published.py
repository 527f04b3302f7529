"""Published values on the thesis's paths: the types of `published.toml`."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe.study.published import Table, read

from .pairs import PairGoodputs


class Overview(Table, frozen=True):
    """Published values of a scenario, over all pairs: Mbit/s and percent."""

    source: str
    mean: float
    mean_efficiency: float
    max: float
    max_efficiency: float
    failed: float
    timeout: float
    real_link: bool = False


class PublishedStack(Table, frozen=True):
    """Published facts on a stack; texts are empty where nothing is certain."""

    version: str
    congestion_control: str


class _File(Table, frozen=True):
    """The tables of the file."""

    sources: dict[str, str]
    scenarios: dict[str, Overview]
    stacks: dict[str, PublishedStack]
    pairs: dict[str, dict[str, str | dict[str, float]]]  # `source`, and client → server → kbit/s


@dataclass(frozen=True)
class Published:
    """All of it; scenarios by name, in the order of the source's table."""

    sources: dict[str, str]
    scenarios: dict[str, Overview]
    stacks: dict[str, PublishedStack]
    pairs: dict[str, PairGoodputs]


def load() -> Published:
    said = read(__file__, _File)
    pairs = {name: _pairs(table) for name, table in said.pairs.items()}
    return Published(said.sources, said.scenarios, said.stacks, pairs)


def _pairs(table: dict[str, str | dict[str, float]]) -> PairGoodputs:
    rows = ((client, row) for client, row in table.items() if isinstance(row, dict))
    bps = {(client, server): 1000.0 * kbps for client, row in rows for server, kbps in row.items()}
    return PairGoodputs(str(table["source"]), bps)
