"""Reading a `result.json`.

The frame must be right: who was client and server, when, and a cell for each pair. What is in a cell is read
entry by entry, and one that cannot be read is named and costs no other. A cell that is null or empty, and an
entry without a result, were not run: the runner passes over pairs that are not compliant.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bentpipe import packed
from bentpipe.analysis.runner import goodput
from bentpipe.analysis.runner.document import CaseResult, CaseText, Image, MeasuredResult, Origin, ResultFile
from bentpipe.errors import BentpipeError
from bentpipe.schema import reading

LARGEST_BYTES = 64 * 2**20  # the runner's matrix of twenty by twenty is below one
LONGEST_NAME = 400
_LARGEST_NUMBER = goodput.LARGEST_KBPS  # also for bit/s, seconds, bytes
_MOST_TRIALS = 1_000_000  # of a cell
_LATEST_S = 253_402_300_799  # the last second of the year 9999
_HINT = "give a result.json as the QUIC interop runner writes it"

Entry = TypeVar("Entry", bound=CaseResult)


@dataclass(frozen=True)
class ReadFile:
    """The content of a file, as far as it can be read."""

    file: ResultFile
    unread: list[str]  # what cannot be, with its place and why
    not_run: list[tuple[str, str]]  # the clients and servers of which nothing was run


def read(path: Path) -> ReadFile:
    """The file at `path`, which may be packed by gzip or zstd. UsageError if there is none; BentpipeError,
    with the key and the value, if it is no `result.json` or nothing in it can be read.
    """
    content = packed.read(path, LARGEST_BYTES, _HINT)
    try:
        found = _read(_decoded(content))
    except ValueError as error:
        raise BentpipeError(f"{path}: {error}", _HINT) from error
    file = found.file
    if found.unread and not any((*file.results, *file.measurements)):
        raise BentpipeError(f"{path}: {found.unread[0]}", _HINT)
    return found


def _decoded(content: bytes) -> dict[str, Any]:
    """The content of the file. ValueError if it is no JSON object."""
    try:
        values = msgspec.json.decode(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object")
    return values


def _read(values: dict[str, Any]) -> ReadFile:
    """ValueError if its frame is wrong."""
    if values.get("results") is None and values.get("measurements") is None:
        raise ValueError('the key "results" is missing')
    unread: list[str] = []
    # aggregate.py writes no end and no version if no pair left a file.
    frame = {"end_time": values.get("start_time")} | values | {"results": [], "measurements": []}
    frame |= {"urls": {}, "quic_draft": None}  # not used here
    frame["tests"] = _texts(values.get("tests"), unread)
    frame["images"] = _images(values.get("images"), unread)
    file = reading.convert(frame, ResultFile, 1)
    _check_frame(file)
    units = _units(values.get("measurements"))
    cells = _Cells(file, values, units, unread)
    results = cells.read("results", CaseResult)
    measurements = cells.read("measurements", MeasuredResult)
    texts = {abbr: _in_kbps(text, units.get(abbr, 1.0)) for abbr, text in file.tests.items()}
    file = msgspec.structs.replace(file, tests=texts, results=results, measurements=measurements)
    not_run = [
        (client, server)
        for place, (client, server, tests, measured) in enumerate(file.pairs())
        if place not in cells.damaged and not any(map(_was_run, (*tests, *measured)))
    ]
    return ReadFile(file, unread, not_run)


def _was_run(entry: CaseResult) -> bool:
    return entry.result is not None or bool(entry.trials)


def _units(cells: Any) -> dict[str, float]:
    """The unit of each measurement that says one in any cell, in kbit/s, by its abbreviation."""
    found: dict[str, float] = {}
    for cell in cells if isinstance(cells, list) else []:
        for entry in cell if isinstance(cell, list) else []:
            said = entry if isinstance(entry, dict) else {}
            abbr, details = said.get("abbr"), said.get("details")
            if isinstance(abbr, str) and isinstance(details, str):
                with contextlib.suppress(ValueError):
                    found.setdefault(abbr, goodput.parse(details).unit)
    return found


def _in_kbps(text: CaseText, unit: float) -> CaseText:
    """The text with its largest value in kbit/s."""
    most = text.theoretical_max_value
    return text if most is None else msgspec.structs.replace(text, theoretical_max_value=most * unit)


def _texts(tests: Any, unread: list[str]) -> Any:
    """The test cases' descriptions as far as they can be read; at least their names."""
    if not isinstance(tests, dict):
        return {} if tests is None else tests
    found = {}
    for abbr, text in tests.items():
        where = f"tests.{abbr}"
        try:
            _check_names([abbr], "tests")
            said = reading.convert(text, CaseText, 1)
            _check_number(said.timeout, "timeout")
            _check_number(said.theoretical_max_value, "theoretical_max_value")
            _check_names([said.name], "name")
            found[abbr] = text
        except ValueError as error:
            unread.append(f"{where}: {error}")
            name = text.get("name") if isinstance(text, dict) else None
            if isinstance(name, str) and _is_name(name) and _is_name(abbr):
                found[abbr] = {"name": name}
    return found


def _images(images: Any, unread: list[str]) -> Any:
    if not isinstance(images, dict):
        return images
    found = {}
    for name, image in images.items():
        try:
            reading.convert(image, Image, 1)
            found[name] = image
        except ValueError as error:
            unread.append(f"images.{name}: {error}")
    return found


def _check_frame(found: ResultFile) -> None:
    """ValueError for what has the right types and cannot be meant."""
    for key in ("start_time", "end_time"):
        if not 0 <= getattr(found, key) <= _LATEST_S:
            raise ValueError(f"{key}: {getattr(found, key)!r} is no time in seconds since 1970")
    if found.end_time < found.start_time:
        raise ValueError(f"end_time: {found.end_time!r} is before start_time, {found.start_time!r}")
    for key in ("clients", "servers"):
        _check_names(getattr(found, key), key)
    if found.bentpipe is not None:
        _check_origin(found.bentpipe)
        for key in ("clients", "servers"):
            variants = [found.bentpipe.names.get(name, name) for name in getattr(found, key)]
            _check_names(variants, f"bentpipe.names: {key}")


def _check_origin(origin: Origin) -> None:
    cases = origin.cases.items()
    for abbr, one in cases:
        _check_names([one.scenario], f"bentpipe.cases.{abbr}.scenario")
        _check_names([one.workload], f"bentpipe.cases.{abbr}.workload")
        _check_names([one.treatment], f"bentpipe.cases.{abbr}.treatment")
        _check_number(one.size_bytes, f"bentpipe.cases.{abbr}.size_bytes")
    settings = Counter((one.scenario, one.workload, one.treatment) for _, one in cases)
    for setting, count in settings.items():
        if count > 1:
            raise ValueError(f"bentpipe.cases: {reading.shown(setting)} stands there {count} times")


@dataclass
class _Cells:
    """Reads the cells of both matrices."""

    file: ResultFile
    values: dict[str, Any]
    units: dict[str, float]  # of measurements, by abbreviation
    unread: list[str]
    seen: list[set[str]] = field(default_factory=list)  # the abbreviations and names in each pair's cells
    damaged: set[int] = field(default_factory=set)  # pairs of which something cannot be read

    def read(self, key: str, kind: type[Entry]) -> list[list[Entry]]:
        """The cells of a matrix. ValueError if it does not fit the clients and servers."""
        cells = self.values.get(key)
        ends = [(client, server) for client in self.file.clients for server in self.file.servers]
        self.seen = self.seen or [set() for _ in ends]
        if cells is None or cells == []:
            return [[] for _ in ends]
        if not isinstance(cells, list):
            raise ValueError(f"{key}: {reading.shown(cells)} is no list")
        if len(cells) != len(ends):
            many = f"{len(self.file.clients)} clients and {len(self.file.servers)} servers"
            raise ValueError(f"{key}: it has {len(cells)} entries, and {many} make {len(ends)}")
        return [list(self._cell(cell, kind, f"{key}[{place}]", place)) for place, cell in enumerate(cells)]

    def _cell(self, cell: Any, kind: type[Entry], where: str, place: int) -> Iterator[Entry]:
        servers = len(self.file.servers)
        pair = f"({self.file.clients[place // servers]} with {self.file.servers[place % servers]})"
        if not isinstance(cell, list | None):
            self.damaged.add(place)
            self.unread.append(f"{where} {pair}: {reading.shown(cell)} is no list")
            return
        for number, values in enumerate(cell or []):
            if values is None:
                continue
            try:
                yield self._entry(values, kind, self.seen[place])
            except ValueError as error:
                self.damaged.add(place)
                self.unread.append(f"{where}[{number}] {pair}: {error}")

    def _entry(self, values: Any, kind: type[Entry], seen: set[str]) -> Entry:
        """ValueError for one that cannot be read."""
        if not isinstance(values, dict):
            raise ValueError(f"{reading.shown(values)} is no JSON object")
        values = {"result": None} | values
        if kind is MeasuredResult:
            values = _with_values(values, self.units)
        entry = reading.convert(values, kind, 1)
        if not entry.name and entry.abbr not in self.file.tests:
            known = ", ".join(self.file.tests) or "nothing"
            raise ValueError(f"abbr: {reading.shown(entry.abbr)} is unknown: tests has {known[:200]}")
        names = {f"abbr: {entry.abbr}", f"name: {self.file.name(entry)}"}
        for name in sorted(names):
            _check_names([name.partition(": ")[2]], name.partition(": ")[0])
        if taken := sorted(names & seen):
            raise ValueError(f"{taken[0]} stands there already")
        _check_trials(entry)
        seen |= names
        return entry


def _with_values(values: dict[str, Any], units: dict[str, float]) -> dict[str, Any]:
    """A measurement whose values are numbers in kbit/s. ValueError for a success without a value, and for
    values that are none.
    """
    details, listed = values.get("details"), values.get("values")
    if isinstance(details, list) and not listed:
        details, listed = "", details
    if not isinstance(details, str | None) or not isinstance(listed, list | None):
        what = "details" if not isinstance(details, str | None) else "values"
        raise ValueError(f"{what}: {reading.shown(values[what])} is not valid: {goodput.FORMS}")
    said = None
    if details and values["result"] == "succeeded":
        try:
            said = goodput.parse(details)
        except ValueError as error:
            raise ValueError(f"details: {error}") from None
    abbr = values.get("abbr")
    unit = said.unit if said else units.get(abbr, 1.0) if isinstance(abbr, str) else 1.0
    found = [_value(one, unit) for one in listed or []]
    if values["result"] == "succeeded" and not (found or said) and values.get("trials") is None:
        raise ValueError(f"it succeeded, and has no value: details are of the form {goodput.FORMS}")
    # The text of a failure is no goodput.
    return values | {"details": details if said else "", "values": found}


def _value(value: Any, unit: float) -> float:
    """One of several values, in kbit/s."""
    try:
        if isinstance(value, str):
            return goodput.parse(value).mean
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{reading.shown(value)} is no number")
        return goodput.in_range(value * unit)
    except ValueError as error:
        raise ValueError(f"values: {error}") from None


def _check_trials(entry: CaseResult) -> None:
    numbers = Counter(trial.iteration for trial in entry.trials or [])
    for trial in entry.trials or []:
        _check_number(trial.goodput_bps, "trials: goodput_bps")
        if not 1 <= trial.iteration <= _MOST_TRIALS or numbers[trial.iteration] > 1:
            raise ValueError(f"trials: iteration: {trial.iteration} is not 1 to {_MOST_TRIALS}, each once")


def _check_number(value: float | None, where: str) -> None:
    if value is not None and not 0 <= value <= _LARGEST_NUMBER:
        raise ValueError(f"{where}: {value!r} is no number from 0 to {_LARGEST_NUMBER:g}")


def _check_names(names: Sequence[str], where: str) -> None:
    """ValueError for a name that nobody can read, or that stands for two things."""
    for name, count in Counter(names).items():
        if not _is_name(name):
            raise ValueError(f"{where}: {reading.shown(name)} is no name")
        if count > 1:
            raise ValueError(f'{where}: "{name}" stands there {count} times')


def _is_name(text: str) -> bool:
    return bool(text.strip()) and text.isprintable() and len(text) <= LONGEST_NAME
