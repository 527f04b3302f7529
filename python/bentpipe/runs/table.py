"""The table of a run's records: `records.parquet`; and that of several runs.

Importing this takes long, which the command line has no time for before it knows what is asked.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from bentpipe.runs.records import Record
from bentpipe.schema.record import TYPES

_GROUP = 2_000  # records in memory at a time, and rows of a group of the Parquet file


class SaidNames:
    """The names in what endpoints report of themselves in some records, by field: name → whether a value of
    it is a text.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        fields = [field for field, kind in TYPES["Record"].items() if kind == "object"]
        self._texts: dict[str, dict[str, bool]] = {field: {} for field in fields}
        for record in records:
            for field, found in self._texts.items():
                for name, value in getattr(record, field).items():
                    found[name] = found.get(name, False) or isinstance(value, str)

    @property
    def texts(self) -> set[str]:
        """The columns whose values are texts."""
        return {
            f"{field}.{name}"
            for field, found in self._texts.items()
            for name, is_text in found.items()
            if is_text
        }

    def columns(self, field: str, values: list[Any]) -> Iterator[tuple[str, pa.Array[Any]]]:
        """The columns of a field whose values in the rows are the given objects."""
        for name, is_text in sorted(self._texts[field].items()):
            yield f"{field}.{name}", _said([value.get(name) for value in values], is_text)


def to_arrow(records: Sequence[Record], said: SaidNames | None = None) -> pa.Table:
    """The table of `records.parquet`: a column per field of a record, in their order, and a column per name
    in place of a field that is an object: the names that `said` has, or those in the records.
    """
    said = said or SaidNames(records)
    rows = [msgspec.to_builtins(record) for record in records]
    columns: dict[str, pa.Array[Any]] = {}
    for field, kind in TYPES["Record"].items():
        values = [row[field] for row in rows]
        if kind == "object":
            columns |= dict(said.columns(field, values))
        else:
            columns[field] = pa.array([_flat(value) for value in values], _arrow(kind))
    return pa.table(columns)


def of_runs(runs: Iterable[tuple[str, str, Sequence[Record]]]) -> pa.Table:
    """The tables of several runs, each given by its name, when it started, and its records: one below the
    other, with the first two as columns in front. Values that a run does not have are null; where one run has
    numbers and another one texts under the same name, all are texts.
    """
    tables = [(name, started, to_arrow(records)) for name, started, records in runs]
    kinds: dict[str, set[pa.DataType]] = {}
    for _, _, table in tables:
        for column in table.schema:
            kinds.setdefault(column.name, set()).add(column.type)
    mixed = {name for name, found in kinds.items() if len(found) > 1}
    named = [
        _as_texts(table, mixed)
        .add_column(0, "run", pa.array([name] * table.num_rows, pa.string()))
        .add_column(1, "started", pa.array([started] * table.num_rows, pa.string()))
        for name, started, table in tables
    ]
    return pa.concat_tables(named, promote_options="default")


def _as_texts(table: pa.Table, names: set[str]) -> pa.Table:
    """The table with these of its columns as texts."""
    for place, name in enumerate(table.column_names):
        if name in names:
            values = table.column(name).to_pylist()
            texts = [None if value is None else str(value) for value in values]
            table = table.set_column(place, name, pa.array(texts, pa.string()))
    return table


_PLAIN: dict[str, pa.DataType] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "object": pa.string(),  # inside another object: JSON
    "Outcome": pa.string(),
}


def _arrow(kind: str) -> pa.DataType:
    """The column's type, of a type as definitions have it."""
    kind = kind.removesuffix("?")
    if kind.startswith("["):
        return pa.list_(_arrow(kind[1:-1]))
    if kind in _PLAIN:
        return _PLAIN[kind]
    return pa.struct([(name, _arrow(inner)) for name, inner in TYPES[kind].items()])


def _flat(value: Any) -> Any:
    """A value, with objects in the objects of a list as JSON."""
    if not isinstance(value, list):
        return value
    return [
        {name: json.dumps(it) if isinstance(it, dict) else it for name, it in entry.items()}
        if isinstance(entry, dict)
        else entry
        for entry in value
    ]


def _said(values: list[Any], is_text: bool) -> pa.Array[Any]:
    """Numbers, or texts if one of them is a text."""
    if is_text:
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def groups(records: Iterable[Record]) -> Iterator[list[Record]]:
    """The records in groups of limited size, so that few are in memory at a time."""
    left = iter(records)
    while group := list(itertools.islice(left, _GROUP)):
        yield group


def write_parquet(records: Callable[[], Iterable[Record]], path: Path) -> None:
    """Write the records that `records` gives, each time that it is called, to `path`, replacing it only when
    it is complete.
    """
    said = SaidNames(records())
    partial = path.with_suffix(".partial")
    # Of a path pyarrow would take what stands before a colon for a URL's scheme.
    with partial.open("wb") as file, pq.ParquetWriter(file, to_arrow([], said).schema) as writer:
        for group in groups(records()):
            writer.write_table(to_arrow(group, said))
    partial.replace(path)
