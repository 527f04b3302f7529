"""A `result.json`: its keys, and how one is read and written.

Clients are the rows of both matrices, servers the columns: the entry of client c and server s is number
c · servers + s. What a file has beyond these keys is passed over, as the runner's own pages do.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from bentpipe.errors import BentpipeError, UsageError
from bentpipe.schema import reading
from bentpipe.schema.record import Outcome

LARGEST_BYTES = 64 * 2**20  # the runner's matrix of twenty by twenty is below one
LONGEST_NAME = 400
_LARGEST_NUMBER = 1e15  # of kbit/s, bit/s, seconds, bytes
_MOST_TRIALS = 1_000_000  # of a cell
_LATEST_S = 253_402_300_799  # the last second of the year 9999
_HINT = "give a result.json as the QUIC interop runner writes it"

Result = Literal["succeeded", "failed", "unsupported"]


class CaseText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a file says of a test case or a measurement."""

    name: str
    desc: str = ""
    timeout: float | None = None  # seconds
    theoretical_max_value: float | None = None  # in the unit of its values
    repetitions: int | None = None


class ExportedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A trial behind an entry that Bentpipe wrote: the runner has one word for all of them."""

    iteration: int
    outcome: Outcome
    goodput_bps: float | None = None


class CaseResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a test case came to with one client and one server; `result` is null where it was not run."""

    abbr: str
    name: str = ""  # absent in files of the fork
    result: Result | None
    error_code: str | None = None
    trials: list[ExportedTrial] | None = None


class MeasuredResult(CaseResult, frozen=True, kw_only=True, omit_defaults=True):
    """Likewise a measurement. The page shows `details` even if it is empty."""

    details: str = ""
    values: list[float] | None = None


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """What the fork says of an implementation."""

    image: str | None = ""
    id: str | None = None
    repo_digests: list[str] | None = []
    versions: list[str] | None = []
    created: str | None = None
    compliant: bool | None = None


class ExportedCase(msgspec.Struct, frozen=True, kw_only=True):
    """What a test case or measurement was in the run that Bentpipe wrote it from."""

    scenario: str
    workload: str
    size_bytes: int
    treatment: str
    testbed: str


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The key `bentpipe`, with what the rest of the file has no place for."""

    version: str
    campaign: str
    names: dict[str, str]  # of implementations → variants of stacks
    cases: dict[str, ExportedCase]  # by their abbreviations


class ResultFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A `result.json`. Times are seconds since 1970."""

    start_time: float
    end_time: float
    log_dir: str = ""
    servers: list[str]
    clients: list[str]
    urls: dict[str, str] = {}
    images: dict[str, Image] | None = None
    tests: dict[str, CaseText] = {}
    quic_draft: int | None = None
    quic_version: str = ""
    results: list[list[CaseResult]]
    measurements: list[list[MeasuredResult]]
    bentpipe: Origin | None = None

    def pairs(self) -> Iterator[tuple[str, str, list[CaseResult], list[MeasuredResult]]]:
        """Each client and server, with their test cases and measurements."""
        ends = ((client, server) for client in self.clients for server in self.servers)
        for (client, server), tests, measured in zip(ends, self.results, self.measurements, strict=True):
            yield client, server, tests, measured

    def name(self, entry: CaseResult) -> str:
        """The name of an entry's test case."""
        return entry.name or self.tests[entry.abbr].name

    def text(self) -> str:
        """The file."""
        return f"{json.dumps(_for_pages(msgspec.to_builtins(self)), ensure_ascii=False, indent=1)}\n"


def read(path: Path) -> ResultFile:
    """The file at `path`. UsageError if there is none; BentpipeError, with the key and the value, if it is no
    `result.json`.
    """
    try:
        return _checked(reading.convert(_decoded(path), ResultFile, 1))
    except ValueError as error:
        raise BentpipeError(f"{path}: {error}", _HINT) from error


def _decoded(path: Path) -> Any:
    """What stands in the file. ValueError if that is no JSON."""
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", "give the result.json in it")
        if (size := path.stat().st_size) > LARGEST_BYTES:
            raise ValueError(f"it has {size} bytes, and at most {LARGEST_BYTES} are read")
        return msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file", _HINT) from None
    except OSError as error:
        raise BentpipeError(f"{path}: cannot be read: {error.strerror}") from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _checked(found: ResultFile) -> ResultFile:
    """ValueError for what has the right types and cannot be meant."""
    for key in ("start_time", "end_time"):
        if not 0 <= getattr(found, key) <= _LATEST_S:
            raise ValueError(f"{key}: {getattr(found, key)!r} is no time in seconds since 1970")
    if found.end_time < found.start_time:
        raise ValueError(f"end_time: {found.end_time!r} is before start_time, {found.start_time!r}")
    for key in ("clients", "servers"):
        _check_names(getattr(found, key), key)
    _check_names([*found.tests], "tests")
    _check_names([one.name for one in found.tests.values()], "tests: name")
    for abbr, text in found.tests.items():
        _check_number(text.timeout, f"tests.{abbr}.timeout")
        _check_number(text.theoretical_max_value, f"tests.{abbr}.theoretical_max_value")
    if found.bentpipe is not None:
        _check_origin(found.bentpipe)
        for key in ("clients", "servers"):
            variants = [found.bentpipe.names.get(name, name) for name in getattr(found, key)]
            _check_names(variants, f"bentpipe.names: {key}")
    many = len(found.clients) * len(found.servers)
    for key in ("results", "measurements"):
        entries: list[list[CaseResult]] = getattr(found, key)
        if len(entries) != many:
            ends = f"{len(found.clients)} clients and {len(found.servers)} servers"
            raise ValueError(f"{key}: it has {len(entries)} entries, and {ends} make {many}")
        for place, cell in enumerate(entries):
            for number, entry in enumerate(cell):
                _check_entry(found, entry, f"{key}[{place}][{number}]")
    for place, (_, _, tests, measured) in enumerate(found.pairs()):
        both = f"results[{place}] and measurements[{place}]"
        _check_names([found.name(entry) for entry in (*tests, *measured)], f"{both}: name")
        _check_names([entry.abbr for entry in (*tests, *measured)], f"{both}: abbr")
    return found


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


def _check_entry(found: ResultFile, entry: CaseResult, where: str) -> None:
    if not entry.name and entry.abbr not in found.tests:
        known = ", ".join(found.tests) or "nothing"
        raise ValueError(f"{where}.abbr: {reading.shown(entry.abbr)} is unknown: tests has {known[:200]}")
    for value in (entry.values or []) if isinstance(entry, MeasuredResult) else []:
        _check_number(value, f"{where}.values")
    numbers = Counter(trial.iteration for trial in entry.trials or [])
    for trial in entry.trials or []:
        _check_number(trial.goodput_bps, f"{where}.trials: goodput_bps")
        if not 1 <= trial.iteration <= _MOST_TRIALS or numbers[trial.iteration] > 1:
            raise ValueError(
                f"{where}.trials: iteration: {trial.iteration} is not 1 to {_MOST_TRIALS}, each once"
            )


def _check_number(value: float | None, where: str) -> None:
    if value is not None and not 0 <= value <= _LARGEST_NUMBER:
        raise ValueError(f"{where}: {value!r} is no number from 0 to {_LARGEST_NUMBER:g}")


def _check_names(names: Sequence[str], where: str) -> None:
    """ValueError for a name that nobody can read, or that stands for two things."""
    for name, count in Counter(names).items():
        if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
            raise ValueError(f"{where}: {reading.shown(name)} is no name")
        if count > 1:
            raise ValueError(f'{where}: "{name}" stands there {count} times')


def _for_pages(values: dict[str, Any]) -> dict[str, Any]:
    """With the keys that the pages and the fork read in each entry, though they say nothing."""
    for cell in values["results"]:
        for entry in cell:
            entry.setdefault("error_code", None)
    for cell in values["measurements"]:
        for entry in cell:
            entry.setdefault("details", "")
            entry.setdefault("values", [])
            entry.setdefault("error_code", None)
    return values
