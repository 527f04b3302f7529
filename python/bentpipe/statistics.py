"""What many records say together: cells of the result matrix and their summaries."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bentpipe.records import Record


class CellKey(NamedTuple):
    """What all iterations of a cell have in common."""

    scenario: str
    workload: str
    treatment: str
    testbed: str
    client: str
    server: str


@dataclass(frozen=True)
class Cell:
    """All iterations of one (scenario, workload, treatment, testbed, client, server), in order of iteration."""

    key: CellKey
    records: tuple[Record, ...]

    @cached_property
    def ok(self) -> tuple[Record, ...]:
        return tuple(record for record in self.records if record.ok)

    @cached_property
    def failures(self) -> Counter[str]:
        """Outcome → how often, of the iterations that failed."""
        return Counter(record.outcome for record in self.records if not record.ok)

    @property
    def goodput_mean_bps(self) -> float | None:
        """Mean over the iterations that succeeded; None if none did."""
        return statistics.fmean(self._goodputs) if self.ok else None

    @property
    def goodput_deviation_bps(self) -> float | None:
        """Sample standard deviation; 0 for a single iteration, None if none succeeded."""
        if not self.ok:
            return None
        return statistics.stdev(self._goodputs) if len(self.ok) > 1 else 0.0

    @property
    def efficiency_mean(self) -> float | None:
        return statistics.fmean(r.efficiency for r in self.ok if r.efficiency is not None) if self.ok else None

    @property
    def median(self) -> Record | None:
        """The iteration that stands for the cell: the (lower) median by goodput of those that succeeded,
        the first iteration if none did."""
        if not self.ok:
            return self.records[0] if self.records else None
        ranked = sorted(self.ok, key=lambda record: (record.goodput_bps or 0.0, record.iteration))
        return ranked[(len(ranked) - 1) // 2]

    @cached_property
    def _goodputs(self) -> list[float]:
        return [record.goodput_bps for record in self.ok if record.goodput_bps is not None]


def cells(records: Iterable[Record]) -> list[Cell]:
    """Group records into cells, in the order in which each cell first appears."""
    groups: dict[CellKey, list[Record]] = {}
    for r in records:
        key = CellKey(r.scenario, r.workload, r.treatment, r.testbed, r.client, r.server)
        groups.setdefault(key, []).append(r)
    return [Cell(k, tuple(sorted(v, key=lambda r: r.iteration))) for k, v in groups.items()]
