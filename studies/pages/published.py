"""What was published of pages, as far as the page compares with it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from bentpipe import strict

FILE = Path(__file__).with_name("published.toml")


class TableRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Medians in milliseconds, one for each loss."""

    scenario: str
    http: Literal["h1", "h3"]
    proxies: bool
    rs: tuple[int, ...]
    fcp: tuple[int, ...]
    plt: tuple[int, ...]


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sources, and Kosek's table II."""

    source: str
    slides: str
    iterations: int
    losses: tuple[str, ...]
    table: tuple[TableRow, ...]


def load() -> Published:
    return strict.read(FILE, Published)
