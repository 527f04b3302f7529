"""All trials of a site as columns: every number of their records, and codes for what they are called.

A column is 32-bit floats, one for each trial, NaN where a trial has no value. Their first bytes lie together,
then their second ones and so on, as those of like numbers are alike; that is compressed with zlib and written
in base64. So a column of 100 000 trials takes some 100 to 400 kB, and its values have 7 digits.
`report-ui/src/collection/columns.ts` reads them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bentpipe.analysis.cells import CellKey
from bentpipe.analysis.comparison import ComparedKey
from bentpipe.runs.records import Record
from bentpipe.runs.several import NamedRun
from bentpipe.runs.table import of_runs

Numbers = npt.NDArray[np.float32]
# What is a number in records and none that was measured, or the number of something.
_NO_MEASURE = frozenset({"format"})


@dataclass
class Coding:
    """Names by their numbers, in the order in which they first appear."""

    names: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]


@dataclass
class TrialColumns:
    """The columns of all trials, in the order of runs and of their records."""

    codes: dict[str, Numbers]  # what a trial is, as numbers of the codings below
    values: dict[str, Numbers]  # column → what was measured
    cells: list[ComparedKey]
    testbeds: list[str]
    outcomes: list[str]
    protocols: list[str]  # of applications

    def cells_of(self, run: int) -> list[int]:
        """The places of the cells that a run has."""
        return [int(cell) for cell in np.unique(self.codes["cell"][self.codes["run"] == run])]


def read(runs: Sequence[NamedRun]) -> TrialColumns:
    """The columns of `runs`, without those in which no trial has a value."""
    cells: dict[ComparedKey, int] = {}
    testbed, outcome, alpn = Coding(), Coding(), Coding()
    names = ("run", "cell", "testbed", "outcome", "alpn")
    rows: list[tuple[int, ...]] = [
        (
            number,
            cells.setdefault(compared_key(record), len(cells)),
            testbed.number(record.testbed),
            outcome.number(record.outcome),
            alpn.number(record.alpn),
        )
        for number, run in enumerate(runs)
        for record in run.records
    ]
    whole = np.array(rows, dtype=np.float32).reshape(-1, len(names))
    return TrialColumns(
        codes={name: whole[:, place] for place, name in enumerate(names)},
        values=_measured(runs),
        cells=list(cells),
        testbeds=testbed.names,
        outcomes=outcome.names,
        protocols=alpn.names,
    )


def compared_key(record: Record | CellKey) -> ComparedKey:
    """The cell of a trial, as runs are compared by it."""
    return ComparedKey(record.scenario, record.workload, record.treatment, record.client, record.server)


def _measured(runs: Sequence[NamedRun]) -> dict[str, Numbers]:
    """Those columns of the trials' table that are of numbers."""
    pieces: dict[str, list[tuple[int, Numbers]]] = {}
    for number, run in enumerate(runs):  # one after the other: a table of all takes much memory
        table = of_runs([run])
        for column in table.schema:
            if _is_number(column.type) and column.name not in _NO_MEASURE:
                values = table.column(column.name).cast(pa.float64()).to_numpy().astype(np.float32)
                pieces.setdefault(column.name, []).append((number, values))
    lengths = [len(run.records) for run in runs]
    whole = {name: _joined(found, lengths) for name, found in pieces.items()}
    return {name: values for name, values in whole.items() if not np.isnan(values).all()}


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _joined(pieces: Iterable[tuple[int, Numbers]], lengths: Sequence[int]) -> Numbers:
    """A column of all trials from those of the runs that have it."""
    known = dict(pieces)
    parts = [
        known[number] if number in known else np.full(length, np.nan, dtype=np.float32)
        for number, length in enumerate(lengths)
    ]
    return np.concatenate(parts)


def packed(values: Numbers) -> dict[str, Any]:
    """A column as its script has it."""
    planes = np.ascontiguousarray(values, dtype="<f4").view(np.uint8).reshape(-1, 4).T
    compressed = zlib.compress(planes.tobytes(), level=9)
    return {"count": len(values), "base64": base64.b64encode(compressed).decode()}
