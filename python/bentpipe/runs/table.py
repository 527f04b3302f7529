"""The table of a run's records: `records.parquet`; and that of several runs.

Importing this takes long, which the command line has no time for before it knows what is asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from bentpipe.runs.records import Record
from bentpipe.runs.several import NamedRun
from bentpipe.schema.record import TYPES


def to_arrow(records: list[Record]) -> pa.Table:
    """The table of `records.parquet`: a column per field of a record, in their order, and a column per name
    in place of a field that is an object.
    """
    rows = [msgspec.to_builtins(record) for record in records]
    columns: dict[str, pa.Array[Any]] = {}
    for field, kind in TYPES["Record"].items():
        values = [row[field] for row in rows]
        if kind == "object":
            for name in sorted({name for value in values for name in value}):
                columns[f"{field}.{name}"] = _said([value.get(name) for value in values])
        else:
            columns[field] = pa.array([_flat(value) for value in values], _arrow(kind))
    return pa.table(columns)


def of_runs(runs: Sequence[NamedRun]) -> pa.Table:
    """The tables of several runs, one below the other, with two columns in front: the run's name, and when it
    started. What the endpoints of a run do not say is null there; where one run has numbers and another one
    texts under the same name, all are texts.
    """
    tables = [to_arrow(run.records) for run in runs]
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for column in table.schema:
            kinds.setdefault(column.name, set()).add(column.type)
    mixed = {name for name, found in kinds.items() if len(found) > 1}
    named = [
        _as_texts(table, mixed)
        .add_column(0, "run", pa.array([run.name] * table.num_rows, pa.string()))
        .add_column(1, "started", pa.array([run.manifest.started] * table.num_rows, pa.string()))
        for run, table in zip(runs, tables, strict=True)
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


def _said(values: list[Any]) -> pa.Array[Any]:
    """Numbers, or texts if one of them is a text."""
    if any(isinstance(value, str) for value in values):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def write_parquet(records: list[Record], path: Path) -> None:
    """Write `records` to `path`, replacing it only once it is complete."""
    table = to_arrow(records)
    partial = path.with_suffix(".partial")
    with partial.open(
        "wb"
    ) as file:  # of a path pyarrow would take what stands before a colon for a URL's scheme
        pq.write_table(table, file)
    partial.replace(path)
