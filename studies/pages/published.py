"""Published values on the loading of pages: the types of `published.toml`."""

from __future__ import annotations

from typing import Literal

from bentpipe.study.published import Table, read


class TableRow(Table, frozen=True):
    """Medians in milliseconds, one for each loss."""

    scenario: str
    http: Literal["h1", "h3"]
    proxies: bool
    rs: tuple[int, ...]
    fcp: tuple[int, ...]
    plt: tuple[int, ...]


class Published(Table, frozen=True):
    """The sources, and Kosek's table II."""

    source: str
    slides: str
    iterations: int
    losses: tuple[str, ...]
    table: tuple[TableRow, ...]


def load() -> Published:
    return read(__file__, Published)
