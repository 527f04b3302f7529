"""All trials of a site as columns: every number of their records, and codes for what they are called.

A column is 32-bit floats, one for each trial, NaN where a trial has no value. Their first bytes lie together,
then their second ones and so on, as those of like numbers are alike; that is compressed with zlib and written
in base64. So a column of 100 000 trials takes some 100 to 400 kB, and its values have 7 digits.
`report-ui/src/collection/columns.ts` reads them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bentpipe.analysis.comparison import ComparedKey
from bentpipe.runs.records import CellKey, Record
from bentpipe.runs.table import to_arrow

T = TypeVar("T")
Numbers = npt.NDArray[np.float32]
# What is a number in records and none that was measured, or the number of something.
_NO_MEASURE = frozenset({"format"})


class Coding(Generic[T]):
    """Names by their numbers, in the order in which they first appear."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}

    @property
    def names(self) -> list[T]:
        return list(self._numbers)

    def number(self, name: T) -> int:
        return self._numbers.setdefault(name, len(self._numbers))


class RunColumns:
    """The columns of a run's trials, some records after the other; codes are numbers of its own names."""

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.codings: dict[str, Coding[Any]] = {name: Coding() for name in _CODED}
        self._codes: dict[str, list[int]] = {name: [] for name in _CODED}
        self.pieces: list[dict[str, Numbers]] = []  # column → values, of those columns that have one

    def add(self, records: Sequence[Record]) -> None:
        """Add the trials that these records are of."""
        for record in records:
            for name, of in _CODED.items():
                self._codes[name].append(self.codings[name].number(of(record)))
        self.lengths.append(len(records))
        table = to_arrow(records)
        values = {
            column.name: table.column(column.name).cast(pa.float64()).to_numpy().astype(np.float32)
            for column in table.schema
            if _is_number(column.type) and column.name not in _NO_MEASURE
        }
        self.pieces.append({name: found for name, found in values.items() if not np.isnan(found).all()})

    def codes(self, name: str, whole: Coding[Any]) -> Numbers:
        """The codes as numbers of `whole`, which learns the names that are new."""
        numbers = [whole.number(one) for one in self.codings[name].names]
        return np.array(numbers, dtype=np.float32)[self._codes[name]]


@dataclass
class TrialColumns:
    """The columns of all trials, in the order of runs, and of the cells of each."""

    codes: dict[str, Numbers]  # what a trial is, as numbers of the names below
    values: dict[str, Numbers]  # column → what was measured
    cells: list[ComparedKey]
    testbeds: list[str]
    outcomes: list[str]
    protocols: list[str]  # of applications

    def cells_of(self, run: int) -> list[int]:
        """The places of the cells that a run has."""
        return [int(cell) for cell in np.unique(self.codes["cell"][self.codes["run"] == run])]


def joined(runs: Sequence[RunColumns]) -> TrialColumns:
    """The columns of all runs, without those in which no trial has a value."""
    whole: dict[str, Coding[Any]] = {name: Coding() for name in _CODED}
    numbers = [np.full(sum(run.lengths), number, dtype=np.float32) for number, run in enumerate(runs)]
    codes = {name: np.concatenate([run.codes(name, whole[name]) for run in runs]) for name in _CODED}
    pieces = [piece for run in runs for piece in run.pieces]
    lengths = [length for run in runs for length in run.lengths]
    columns = dict.fromkeys(name for piece in pieces for name in piece)
    return TrialColumns(
        codes={"run": np.concatenate(numbers), **codes},
        values={name: _joined([piece.get(name) for piece in pieces], lengths) for name in columns},
        cells=whole["cell"].names,
        testbeds=whole["testbed"].names,
        outcomes=whole["outcome"].names,
        protocols=whole["alpn"].names,
    )


def compared_key(record: Record | CellKey) -> ComparedKey:
    """The cell of a trial, as runs are compared by it."""
    return ComparedKey(record.scenario, record.workload, record.treatment, record.client, record.server)


_CODED: dict[str, Callable[[Record], Any]] = {
    "cell": compared_key,
    "testbed": lambda record: record.testbed,
    "outcome": lambda record: record.outcome,
    "alpn": lambda record: record.alpn,
}


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _joined(pieces: Iterable[Numbers | None], lengths: Sequence[int]) -> Numbers:
    """A column of all trials, of which some pieces have no value."""
    return np.concatenate(
        [
            np.full(length, np.nan, dtype=np.float32) if piece is None else piece
            for piece, length in zip(pieces, lengths, strict=True)
        ]
    )


def packed(values: Numbers) -> dict[str, Any]:
    """A column as its script has it."""
    planes = np.ascontiguousarray(values, dtype="<f4").view(np.uint8).reshape(-1, 4).T
    compressed = zlib.compress(planes.tobytes(), level=9)
    return {"count": len(values), "base64": base64.b64encode(compressed).decode()}
