"""What was published of QUIC proxies around a satellite hop: the figures of `published.toml`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bentpipe import strict

FILE = Path(__file__).with_name("published.toml")


class PepScenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was published of proxies over one path: bytes as multiples of those without, seconds."""

    most: float
    most_within_s: float
    slow_start: str
    by_end: str
    response_start_s: float
    response_start_proxies_s: float


class Pep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was published of QUIC proxies around a satellite hop."""

    source: str
    iterations: int
    satellite_ms: float
    scenarios: dict[str, PepScenario]


def load() -> Pep:
    return strict.read(FILE, Pep)
