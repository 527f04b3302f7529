"""Records: the one-line result of a trial, and the files of a run that hold them.

`records.jsonl` gets one line per finished trial, in the order in which they end; it is what a run resumes
from. `records.parquet` is sealed from it at the end, with the same columns, but for what endpoints say of
themselves: there every name has a column of its own. `schemas/record.toml` defines the columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from bentpipe import labels
from bentpipe.labels import ScenarioLabel, TreatmentLabel, VariantLabel
from bentpipe.plan.trial import Trial
from bentpipe.schema import reading
from bentpipe.schema import record as schema
from bentpipe.schema.record import (
    FORMAT,
    MEASURED,
    OUTCOMES,
    REQUIRED,
    FlowResult,
    HopResult,
    Outcome,
    ProxyResult,
)

__all__ = ["FORMAT", "MEASURED", "OUTCOMES", "CellKey", "FlowResult", "HopResult", "ProxyResult", "Record"]


class _OfACell(Protocol):
    """An object with the values of a cell's key."""

    @property
    def scenario(self) -> str: ...
    @property
    def workload(self) -> str: ...
    @property
    def treatment(self) -> str: ...
    @property
    def testbed(self) -> str: ...
    @property
    def client(self) -> str: ...
    @property
    def server(self) -> str: ...


class CellKey(NamedTuple):
    """The properties that all iterations of a cell have in common."""

    scenario: str
    workload: str
    treatment: str
    testbed: str
    client: str
    server: str

    @classmethod
    def of(cls, one: _OfACell) -> CellKey:
        """The key of a trial, or of anything with a trial's properties."""
        return cls(one.scenario, one.workload, one.treatment, one.testbed, one.client, one.server)

    @property
    def scenario_label(self) -> ScenarioLabel:
        return labels.scenario(self.scenario)

    @property
    def treatment_label(self) -> TreatmentLabel:
        return labels.treatment(self.treatment)

    @property
    def client_label(self) -> VariantLabel:
        return labels.variant(self.client)

    @property
    def server_label(self) -> VariantLabel:
        return labels.variant(self.server)


class Record(schema.Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The record of a trial: its identity, its outcome, its measures (`schemas/record.toml`)."""

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    @property
    def failed(self) -> bool:
        """Whether the trial failed. An unsupported one has not."""
        return self.outcome not in ("ok", "unsupported")

    @property
    def misses_packets(self) -> bool:
        """Whether too few packets could be decoded, so that its times are the client's; `detail` says so."""
        return self.measured_from == "client" and bool(self.undecoded_packets)

    @property
    def cell_key(self) -> CellKey:
        return CellKey.of(self)

    @property
    def in_a_line(self) -> str:
        """The result of the trial, for people: `sat noq → quinn 9.15 Mbit/s`."""
        came_to = self.outcome.replace("_", " ")
        if self.ok and self.goodput_bps is not None:
            came_to = f"{self.goodput_bps / 1e6:.2f} Mbit/s"
        elif self.ok and self.completion_s is not None:
            came_to = f"{self.completion_s:.2f} s"
        return f"{self.scenario} {self.client} → {self.server} {came_to}"

    def to_json(self) -> str:
        """The record as one line of JSON, without the newline."""
        return json.dumps(msgspec.to_builtins(self), separators=(",", ":"))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Record:
        """A record from a JSON object, of this format or an older one, whose missing columns are empty.
        ValueError, with the column, for anything else.
        """
        if isinstance(values, dict) and (absent := REQUIRED - values.keys()):
            reading.check_format(values, FORMAT)
            first = next(column for column in cls.__struct_encode_fields__ if column in absent)
            raise ValueError(f'the key "{first}" is missing')
        return reading.convert(values, cls, FORMAT)


def measured(trial: Trial, values: Mapping[str, Any]) -> Record:
    """The record of a trial from the testbed's measurements. ValueError if these are not its columns."""
    if values.keys() != MEASURED:
        odd = sorted(values.keys() ^ MEASURED)
        raise ValueError(f"the testbed's columns are not those of a record: {', '.join(odd)}")
    return Record.from_mapping({**_identity(trial), **values})


def unmeasured(trial: Trial, outcome: Outcome, detail: str) -> Record:
    """The record of a trial in which nothing was measured."""
    return Record(**_identity(trial), outcome=outcome, detail=detail)


def without_courses(record: Record) -> Record:
    """A record without its curves of received data, its own and those of further flows: most of its size."""
    return msgspec.structs.replace(record, received_bytes=[], in_order_bytes=[], flows=[])


def _identity(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.id,
        "scenario": trial.scenario,
        "workload": trial.workload,
        "size_bytes": trial.size_bytes,
        "client": trial.client,
        "server": trial.server,
        "treatment": trial.treatment,
        "testbed": trial.testbed,
        "ip": trial.ip,
        "iteration": trial.iteration,
        "seed": trial.seed,
    }


def read_jsonl(path: Path) -> Iterator[Record]:
    """The records of a `records.jsonl`. A last line that was cut off while it was written is skipped."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    yield parse_line(path, number, line)
                except ValueError as error:
                    if was_cut_off(line, error):
                        return
                    raise


def was_cut_off(line: bytes, error: ValueError) -> bool:
    """Whether a line is incomplete because its writing was interrupted: the last one of a file."""
    return not line.endswith(b"\n") and isinstance(error.__cause__, json.JSONDecodeError)


def parse_line(path: Path, number: int, line: str | bytes) -> Record:
    """The record in a line of the file `path`; ValueError, which names both, if it is not valid."""
    try:
        return Record.from_mapping(json.loads(line))
    except ValueError as error:
        raise ValueError(f"{path}:{number}: not a record: {error}") from error
