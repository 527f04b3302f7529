"""What was published of the thesis's paths: the figures of `published.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe.study.compare import PairGoodputs

FILE = Path(__file__).with_name("published.toml")


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
class Published:
    """All of it; scenarios by name, in the order of the source's table."""

    sources: dict[str, str]
    scenarios: dict[str, Overview]
    stacks: dict[str, PublishedStack]
    pairs: dict[str, PairGoodputs]


def load() -> Published:
    values = tomllib.loads(FILE.read_text())
    return Published(
        sources=values["sources"],
        scenarios={name: Overview(**one) for name, one in values["scenarios"].items()},
        stacks={name: PublishedStack(**one) for name, one in values["stacks"].items()},
        pairs={name: _pairs(dict(one)) for name, one in values["pairs"].items()},
    )


def _pairs(table: dict[str, Any]) -> PairGoodputs:
    source = table.pop("source")
    bps = {(client, server): 1000.0 * kbps for client, row in table.items() for server, kbps in row.items()}
    return PairGoodputs(source, bps)
