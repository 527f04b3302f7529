"""All trials of a site as columns: every number of their records, and codes for what they are called.

A column is 32-bit floats, one for each trial, NaN where a trial has no value. Their first bytes lie together,
then their second ones and so on, as those of like numbers are similar; that is compressed with zlib and
written in base64. So a column of 100 000 trials takes some 100 to 400 kB, and its values have 7 digits.
`report-ui/src/collection/columns.ts` reads them.
"""

from __future__ import annotations

import base64
import zlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bentpipe.analysis.comparison import ComparedKey
from bentpipe.runs.records import CellKey, Record
from bentpipe.runs.table import SaidNames, to_arrow
from bentpipe.schema.record import TYPES

T = TypeVar("T")
Numbers = npt.NDArray[np.float32]
# What is a number in records and none that was measured, or the number of something.
_NO_MEASURE = frozenset({"format"})


class Coding(Generic[T]):
    """Numbers for names, in the order in which they first appear."""

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
        self._codings: dict[str, Coding[Any]] = {name: Coding() for name in _CODED}
        self._codes = {name: array("I") for name in _CODED}
        self._pieces: list[dict[str, Numbers]] = []  # column → values, of those columns that have one
        self._texts: set[str] = set()

    def add(self, records: Sequence[Record]) -> None:
        """Add the trials of these records."""
        for record in records:
            for name, of in _CODED.items():
                self._codes[name].append(self._codings[name].number(of(record)))
        self.lengths.append(len(records))
        said = SaidNames(records)
        self._texts |= said.texts
        table = to_arrow(records, said)
        values = {
            column.name: table.column(column.name).cast(pa.float64()).to_numpy().astype(np.float32)
            for column in table.schema
            if _is_number(column.type) and column.name not in _NO_MEASURE
        }
        self._pieces.append({name: found for name, found in values.items() if not np.isnan(found).all()})

    @property
    def names(self) -> set[str]:
        """The columns in which a trial has a number; where one has a text, the run's column is of texts."""
        return {name for piece in self._pieces for name in piece} - self._texts

    def values(self, name: str) -> list[Numbers]:
        """A column, in pieces."""
        is_here = name not in self._texts
        return [
            piece[name] if is_here and name in piece else np.full(length, np.nan, dtype=np.float32)
            for piece, length in zip(self._pieces, self.lengths, strict=True)
        ]

    def codes(self, name: str, whole: Coding[Any]) -> Numbers:
        """The codes as numbers of `whole`, which learns the names that are new."""
        numbers = [whole.number(one) for one in self._codings[name].names]
        return np.array(numbers, dtype=np.float32)[np.frombuffer(self._codes[name], dtype=np.uintc)]


@dataclass
class TrialColumns:
    """The columns of all trials, in the order of runs and of their records."""

    runs: Sequence[RunColumns]
    names: list[str]  # of the columns of what was measured, in the order of a record's columns
    codes: dict[str, Numbers]  # what a trial is, as numbers of the names below
    cells: list[ComparedKey]
    testbeds: list[str]
    outcomes: list[str]
    protocols: list[str]  # of applications

    def values(self, name: str) -> Numbers:
        """A column of measured values."""
        return np.concatenate([piece for run in self.runs for piece in run.values(name)])

    def cells_of(self, run: int) -> list[int]:
        """The places of the cells that a run has."""
        return [int(cell) for cell in np.unique(self.codes["cell"][self.codes["run"] == run])]


def joined(runs: Sequence[RunColumns]) -> TrialColumns:
    """The columns of all runs, without those in which no trial has a value."""
    whole: dict[str, Coding[Any]] = {name: Coding() for name in _CODED}
    numbers = [np.full(sum(run.lengths), number, dtype=np.float32) for number, run in enumerate(runs)]
    codes = {name: np.concatenate([run.codes(name, whole[name]) for run in runs]) for name in _CODED}
    places = {field: place for place, field in enumerate(TYPES["Record"])}
    names = {name for run in runs for name in run.names}
    return TrialColumns(
        runs=runs,
        names=sorted(names, key=lambda name: (places[name.partition(".")[0]], name)),
        codes={"run": np.concatenate(numbers), **codes},
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
    "seed": lambda record: record.seed,
}


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def packed(values: Numbers) -> dict[str, Any]:
    """A column as its script has it."""
    planes = np.ascontiguousarray(values, dtype="<f4").view(np.uint8).reshape(-1, 4).T
    compressed = zlib.compress(planes.tobytes(), level=9)
    return {"count": len(values), "base64": base64.b64encode(compressed).decode()}
