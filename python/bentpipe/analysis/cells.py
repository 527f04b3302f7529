"""Many records together: cells of the result matrix and their summaries."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bentpipe.runs.records import CellKey, Record

# Null in a trial that lost too many frames: that many never reached any age.
AGES = frozenset({"frame_age_median_s", "frame_age_p95_s", "frame_age_p99_s"})


@dataclass(frozen=True)
class Cell:
    """All iterations of one client and server in one setting, in order of iteration."""

    key: CellKey
    records: tuple[Record, ...]

    @classmethod
    def of(cls, key: CellKey, records: Iterable[Record]) -> Cell:
        """The cell of these records, which may be in any order."""
        return cls(key, tuple(sorted(records, key=lambda record: record.iteration)))

    @cached_property
    def ok(self) -> tuple[Record, ...]:
        return tuple(record for record in self.records if record.ok)

    @cached_property
    def failures(self) -> Counter[str]:
        """Outcome → how often, of the iterations that failed."""
        return Counter(record.outcome for record in self.records if not record.ok)

    @property
    def h3(self) -> bool:
        """Whether it is over HTTP/3, whose frames make goodput and times differ from those of hq-interop."""
        return any(record.alpn == "h3" for record in self.records)

    @property
    def goodput_mean_bps(self) -> float | None:
        """Mean over the iterations that succeeded; None if none did."""
        return statistics.fmean(self._goodputs) if self._goodputs else None

    @property
    def goodput_deviation_bps(self) -> float | None:
        """Sample standard deviation; 0 for a single iteration, None if none succeeded."""
        if not self._goodputs:
            return None
        return statistics.stdev(self._goodputs) if len(self._goodputs) > 1 else 0.0

    @property
    def efficiency_mean(self) -> float | None:
        """Mean over the iterations that succeeded; None if none did."""
        known = [record.efficiency for record in self.ok if record.efficiency is not None]
        return statistics.fmean(known) if known else None

    @property
    def median(self) -> Record | None:
        """The iteration that represents the cell: the (lower) median of those that succeeded, by goodput, or
        by completion time if any of them came too fast for a goodput; of live streams by how long they
        stalled, then by rate, of frames by how many came in time, then by age. The first iteration if none
        succeeded.
        """
        if not self.ok:
            return self.records[0] if self.records else None
        known = len(self._goodputs) == len(self.ok)
        ranked = sorted(self.ok, key=lambda record: (_merit(record, known), record.iteration))
        return ranked[(len(ranked) - 1) // 2]

    def values(self, column: str) -> list[float]:
        """The values of a column of numbers in the iterations that succeeded, where it was measured; the age
        of frames is infinite where too many were lost.
        """
        taken = (getattr(record, column) for record in self.ok if column not in AGES or record.frames)
        values = (math.inf if value is None and column in AGES else value for value in taken)
        return [value for value in values if value is not None]

    @cached_property
    def _goodputs(self) -> list[float]:
        return [record.goodput_bps for record in self.ok if record.goodput_bps is not None]


def _merit(record: Record, has_goodput: bool) -> tuple[float, float]:
    """By what iterations of a cell are ranked, the worst first."""
    if record.stalled_s is not None:
        return -record.stalled_s, record.media_rate_bps or 0.0
    if record.frames is not None:
        age = record.frame_age_p99_s
        return record.in_time_share or 0.0, -(math.inf if age is None else age)
    speed = record.goodput_bps if has_goodput else -(record.completion_s or math.inf)
    return speed or 0.0, 0.0


def cells(records: Iterable[Record]) -> list[Cell]:
    """Group records into cells, in the order in which each cell first appears."""
    groups: dict[CellKey, list[Record]] = {}
    for r in records:
        groups.setdefault(r.cell_key, []).append(r)
    return [Cell.of(key, own) for key, own in groups.items()]


class MatrixKey(NamedTuple):
    """The properties that all cells of a matrix have in common."""

    scenario: str
    workload: str
    treatment: str
    testbed: str

    @classmethod
    def of(cls, cell: CellKey) -> MatrixKey:
        return cls(cell.scenario, cell.workload, cell.treatment, cell.testbed)


@dataclass(frozen=True)
class Matrix:
    """The cells of one (scenario, workload, treatment, testbed): clients are rows, servers are columns."""

    key: MatrixKey
    cells: tuple[Cell, ...]

    @cached_property
    def clients(self) -> tuple[str, ...]:
        return tuple(sorted({cell.key.client for cell in self.cells}, key=by_name))

    @cached_property
    def servers(self) -> tuple[str, ...]:
        return tuple(sorted({cell.key.server for cell in self.cells}, key=by_name))

    def row(self, client: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.key.client == client)

    def column(self, server: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.key.server == server)


def matrices(records: Iterable[Record]) -> list[Matrix]:
    """Group records into matrices, in the order in which each matrix first appears."""
    groups: dict[MatrixKey, list[Cell]] = {}
    for cell in cells(records):
        groups.setdefault(MatrixKey.of(cell.key), []).append(cell)
    return [Matrix(key, tuple(members)) for key, members in groups.items()]


class Spread(NamedTuple):
    """The extremes and the median of some values, in their unit; they may be infinite."""

    min: float
    median: float
    max: float


def spread(values: Iterable[float | None]) -> Spread | None:
    """Spread of the known values; None if there are none."""
    known = sorted(value for value in values if value is not None)
    return Spread(known[0], statistics.median(known), known[-1]) if known else None


def by_name(name: str) -> tuple[str, str]:
    """The key for sorting by name: without regard to case."""
    return name.casefold(), name
