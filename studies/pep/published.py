"""What was published of QUIC proxies around a satellite hop: the figures of `published.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("published.toml")


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


def load() -> Pep:
    values = tomllib.loads(FILE.read_text())
    scenarios = {name: PepScenario(**one) for name, one in values.pop("scenarios").items()}
    return Pep(scenarios=scenarios, **values)
