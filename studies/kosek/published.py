"""Published values on proxies around a satellite hop: the types of `published.toml`."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from bentpipe.study.published import Table, read

Floats = npt.NDArray[np.float64]


class KosekScenario(Table, frozen=True):
    """Values from the text on one path: bytes as multiples of those without proxies, seconds."""

    most: float
    slow_start: str
    response_start_s: float
    response_start_proxies_s: float
    tcp_response_start_s: float
    tcp_response_start_proxies_s: float


class GoodputRow(Table, frozen=True):
    """Mean goodputs of each second over one path with one loss, in kbit/s."""

    scenario: str
    loss: str
    quic: tuple[int, ...]
    quic_proxies: tuple[int, ...]
    tcp: tuple[int, ...]
    tcp_proxies: tuple[int, ...]

    def rates(self, transport: str, *, proxies: bool) -> Floats:
        """In Mbit/s."""
        name = f"{transport}_proxies" if proxies else transport
        result: Floats = np.array(getattr(self, name), dtype=np.float64) / 1e3
        return result

    def received(self, transport: str, *, proxies: bool) -> Floats:
        """MB by the end of each second."""
        result: Floats = np.cumsum(self.rates(transport, proxies=proxies)) / 8
        return result

    def ratio(self, transport: str) -> Floats:
        """Bytes with proxies to those without, by the end of each second."""
        with_, without = (self.received(transport, proxies=one) for one in (True, False))
        result: Floats = with_ / without
        return result


class PageRow(Table, frozen=True):
    """A row of table II: medians in milliseconds, one for each loss."""

    scenario: str
    http: Literal["h3", "h1"]
    proxies: bool
    rs: tuple[int, ...]
    fcp: tuple[int, ...]
    plt: tuple[int, ...]


class Kosek(Table, frozen=True, dict=True):
    """Published values on proxies around a satellite hop."""

    source: str
    dataset: str
    iterations: int
    quic_satellite_ms: float
    tcp_satellite_ms: float
    page_losses: tuple[str, ...]
    scenarios: dict[str, KosekScenario]
    goodput: tuple[GoodputRow, ...]
    pages: tuple[PageRow, ...]

    @cached_property
    def _rows(self) -> dict[tuple[str, str], GoodputRow]:
        return {(one.scenario, one.loss): one for one in self.goodput}

    def row(self, scenario: str, loss: str) -> GoodputRow | None:
        return self._rows.get((scenario, loss))


def load() -> Kosek:
    return read(__file__, Kosek)
