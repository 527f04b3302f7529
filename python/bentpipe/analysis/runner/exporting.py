"""Export of a run in the format of the runner.

Each setting of a run, which is a scenario, a workload and a treatment, is a test case or a measurement. A
test case of the contract that the runner has too keeps the runner's name and letters; what has a goodput
otherwise is a measurement, in kbit/s. The runner has one word for all repetitions: one failure is a failure.
Each trial stands beside it under `trials`, which the runner's pages pass over and `importing` reads.

Values are the runner's own goodput, from the first to the last 1-RTT packet. Where a trial has no such time,
as over TCP, those of its setting are of records, from the first data on, and that is said. `trials` has
goodput as records have it.
"""

from __future__ import annotations

import html
import math
import re
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import bentpipe
from bentpipe import labels, workload
from bentpipe.analysis.cells import Cell, Matrix, MatrixKey, matrices
from bentpipe.analysis.runner import goodput, test_cases
from bentpipe.analysis.runner.document import (
    CAMPAIGN,
    CaseResult,
    CaseText,
    ExportedCase,
    ExportedTrial,
    Image,
    MeasuredResult,
    Origin,
    Result,
    ResultFile,
)
from bentpipe.analysis.runner.goodput import KBIT
from bentpipe.errors import UsageError, one_of
from bentpipe.plan.applicability import Combination
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import Record
from bentpipe.schema.record import Outcome
from bentpipe.testbed import RUNNER
from bentpipe.workload import TESTCASES, FileTransfer, shown_size

_QUIC_VERSION = "0x1"
_QUIC_DRAFT = 34  # what the runner wrote for version 1
_LONGEST_PART = 8  # of an abbreviation
_TESTS = test_cases.TESTS | test_cases.OTHER_TESTS
_WHAT_CAN = "transfers and uploads can, and the test cases of files, such as handshake"


@dataclass(frozen=True)
class ExportedSetting:
    """A setting of a run, and its name in a `result.json`."""

    matrix: Matrix
    name: str
    abbr: str
    measured: bool

    @property
    def title(self) -> str:
        """The setting in words."""
        return setting_title(self.matrix.key)

    @cached_property
    def is_timed(self) -> bool:
        """Whether all trials that have a goodput have the time by which the runner computes it."""
        return all(
            one.runner_transfer_s
            for cell in self.matrix.cells
            for one in cell.ok
            if one.goodput_bps is not None
        )

    def values_kbps(self, cell: Cell) -> list[float]:
        """The goodputs of a cell's trials that succeeded."""
        known = (one for one in cell.ok if one.goodput_bps is not None)
        bps = (_as_the_runner(one) if self.is_timed else one.goodput_bps for one in known)
        return [value / KBIT for value in bps if value is not None]


def _as_the_runner(record: Record) -> float | None:
    return 8 * record.size_bytes / record.runner_transfer_s if record.runner_transfer_s else None


@dataclass(frozen=True)
class Export:
    """A file, and the notes on it."""

    file: ResultFile
    settings: tuple[ExportedSetting, ...]
    renamed: Mapping[str, str]  # variant → its name in the file, where they differ
    left_out: Mapping[str, str]  # settings in words → why
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Chosen:
    """The chosen settings: scenarios, workloads and treatments as records have them; none: all."""

    scenarios: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    treatments: tuple[str, ...] = ()

    def of(self, records: Sequence[Record]) -> list[Record]:
        """The records of these. UsageError for one that the run does not have."""
        found = list(records)
        for column in ("scenario", "workload", "treatment"):
            wanted: tuple[str, ...] = getattr(self, f"{column}s")
            present = list(dict.fromkeys(getattr(record, column) for record in records))
            for one in wanted:
                if one not in present:
                    raise UsageError(
                        f'--{column}: the run has no "{one}"', one_of(one, present, f"{column}s of the run")
                    )
            found = [record for record in found if not wanted or getattr(record, column) in wanted]
        if not found:
            raise UsageError(
                "--scenario, --workload and --treatment: no trial of the run has all of them",
                "leave one of them out",
            )
        return found


def setting_title(key: MatrixKey) -> str:
    """A setting in words: `sat, transfer of 10 MiB`."""
    between = "" if key.treatment == DIRECT else f", {key.treatment}"
    # A test case of a file of the runner is both.
    moved = "" if key.workload == key.scenario else f", {workload.title(key.workload)}"
    return f"{key.scenario}{moved}{between}"


def export(
    manifest: Manifest, records: Sequence[Record], log_dir: str, homes: Mapping[str, str], chosen: Chosen
) -> Export:
    """The file of a run. `homes` are the addresses of stacks, `log_dir` is where the runner's pages look for
    logs. UsageError if nothing of the run has a place in it.
    """
    names = _Names()
    settings, left_out = _settings(matrices(chosen.of(records)), names)
    if not settings:
        what, why = next(iter(left_out.items()))
        raise UsageError(f"nothing of this run can stand in a result.json, as {what}: {why}", _WHAT_CAN)
    clients, servers = (
        sorted({end for one in settings for end in getattr(one.matrix, ends)} | _imported(manifest, ends))
        for ends in ("clients", "servers")
    )
    labels_ = sorted({*clients, *servers})
    named = {label: names.implementation(label) for label in labels_}
    pairs = [(client, server) for client in clients for server in servers]
    tests, measured = ([one for one in settings if one.measured is which] for which in (False, True))
    cannot = {Combination.of(cell) for one in manifest.not_applicable for cell in one.cells}
    started, finished = _seconds(manifest.started), _seconds(manifest.finished or manifest.started)
    file = ResultFile(
        start_time=started,
        end_time=max(started, finished),
        log_dir=log_dir,
        servers=[named[one] for one in servers],
        clients=[named[one] for one in clients],
        urls={named[one]: homes.get(labels.variant(one).stack, "") for one in labels_},
        images={named[one]: _image(one, manifest, records) for one in labels_},
        tests={one.abbr: _text(one, manifest) for one in settings},
        quic_draft=_QUIC_DRAFT,
        quic_version=_QUIC_VERSION,
        results=[
            _tests(settings, *ends) + [CaseResult(**one) for one in _not_applicable(tests, *ends, cannot)]
            for ends in pairs
        ],
        measurements=[
            _measurements(settings, *ends)
            + [MeasuredResult(**one) for one in _not_applicable(measured, *ends, cannot)]
            for ends in pairs
        ],
        bentpipe=Origin(
            version=bentpipe.__version__,
            campaign=manifest.campaign,
            names={name: label for label, name in named.items()},
            cases={one.abbr: _case(one) for one in settings},
        ),
    )
    renamed = {label: name for label, name in named.items() if label != name}
    return Export(file, tuple(settings), renamed, left_out, tuple(_notes(manifest, settings)))


def _imported(manifest: Manifest, ends: str) -> set[str]:
    """The clients or servers of the file that the run was made of: of some nothing was run."""
    return set(getattr(manifest.plan, ends)) if manifest.plan.testbed == RUNNER else set()


def _settings(found: Iterable[Matrix], names: _Names) -> tuple[list[ExportedSetting], dict[str, str]]:
    """Results that the file can hold, and why it cannot hold the rest. Those that the runner has come first,
    so that none of the others takes their names.
    """
    left_out: dict[str, str] = {}
    kept: list[tuple[Matrix, bool]] = []
    for matrix in found:
        moved = workload.known(matrix.key.workload)
        measured = any(record.goodput_bps is not None for cell in matrix.cells for record in cell.ok)
        failed = not any(cell.ok for cell in matrix.cells)
        is_imported = matrix.key.testbed == RUNNER and moved is None and not measured
        if is_imported or (moved is not None and moved.testcase in test_cases.TESTS):
            kept.append((matrix, False))
        elif measured or (failed and _has_goodput(matrix)):
            kept.append((matrix, True))
        else:
            left_out[setting_title(matrix.key)] = "the runner has no such test case, and it has no goodput"
    order = sorted(range(len(kept)), key=lambda number: (_known(*kept[number]) is None, number))
    settings = {number: names.setting(*kept[number]) for number in order}
    return [settings[number] for number in range(len(kept))], left_out


def _has_goodput(matrix: Matrix) -> bool:
    """Whether its trials would have had a goodput, had they succeeded."""
    moved = workload.known(matrix.key.workload)
    return moved is not None and moved.testcase in ("transfer", "upload")


def _known(matrix: Matrix, measured: bool) -> str | None:
    """The runner's name, if this is the runner's own test case or measurement."""
    key = matrix.key
    if key.treatment != DIRECT:
        return None
    if measured:
        own = test_cases.MEASUREMENTS.get(key.scenario)
        return key.scenario if own is not None and own.workload == key.workload else None
    name = key.workload.partition(":")[0]
    return name if name in _TESTS else None


class _Names:
    """The names that a file has given, each once, in letters that its pages can select by: small ones of
    names, and of abbreviations letters and digits alone, which count as equal in either case.
    """

    def __init__(self) -> None:
        self._abbreviations: set[str] = {one.abbr.casefold() for one in test_cases.MEASUREMENTS.values()}
        self._abbreviations |= {abbr.casefold() for abbr in _TESTS.values()}
        self._used: set[str] = set()
        self._names: set[str] = {*test_cases.MEASUREMENTS, *_TESTS}
        self._implementations: set[str] = set()

    def implementation(self, label: str) -> str:
        return _unique(_slug(label), self._implementations, "-")

    def setting(self, matrix: Matrix, measured: bool) -> ExportedSetting:
        known = _known(matrix, measured)
        if known is not None and known not in self._used:
            self._used.add(known)
            abbr = test_cases.MEASUREMENTS[known].abbr if measured else _TESTS[known]
            return ExportedSetting(matrix, known, abbr, measured)
        parts = _parts(matrix.key, measured)
        name = _unique(_slug("-".join(parts)), self._names, "-")
        short = "".join(re.sub(r"[^a-z0-9]", "", _slug(part))[:_LONGEST_PART] for part in parts).upper()
        return ExportedSetting(matrix, name, _unique(short, self._abbreviations, "N"), measured)


def _parts(key: MatrixKey, measured: bool) -> list[str]:
    """The parts of a setting's name: its properties other than the defaults."""
    between = [] if key.treatment == DIRECT else [labels.treatment(key.treatment).kind]
    moved = workload.known(key.workload)
    if not measured or not isinstance(moved, FileTransfer):
        return [*dict.fromkeys([key.workload.partition(":")[0], key.scenario]), *between]
    plain = key.workload == test_cases.MEASUREMENTS["goodput"].workload
    count = f"{moved.count}x" if moved.count > 1 else ""
    size = [] if plain else [f"{count}{shown_size(moved.file_bytes)}".replace(" ", "")]
    return [*([] if moved.name == "transfer" else [moved.name]), key.scenario, *size, *between]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-") or "x"


def _unique(name: str, taken: set[str], joint: str) -> str:
    """`name`, with a number behind it if it is taken; from now on it is."""
    found, number = name, 1
    while found.casefold() in taken:
        number += 1
        found = f"{name}{joint}{number}"
    taken.add(found.casefold())
    return found


def _text(one: ExportedSetting, manifest: Manifest) -> CaseText:
    """The pages take texts for HTML."""
    state = manifest.scenarios.get(one.matrix.key.scenario)
    summary: dict[str, Any] = state.summary if state else {}
    moved = workload.known(one.matrix.key.workload)
    upload = moved is not None and TESTCASES[moved.testcase].sender == "client"
    # Of several paths the summary's rate is that of the first, which is nobody's maximum.
    rate = None if summary.get("paths") else _number(summary, f"{'return' if upload else 'forward'}_rate_bps")
    timeout = _number(summary, "timeout_s")
    title = summary.get("title")
    desc = f"{one.title}."
    if isinstance(title, str) and title:
        # That of an imported run begins with what was written when it was exported.
        desc = title if title.startswith(desc) else f"{desc} {title}."
    return CaseText(
        name=one.name,
        desc=html.escape(desc, quote=False),
        timeout=timeout,
        theoretical_max_value=rate / KBIT if one.measured and rate is not None else None,
        repetitions=max(len(cell.records) for cell in one.matrix.cells) if one.measured else None,
    )


def _case(one: ExportedSetting) -> ExportedCase:
    key = one.matrix.key
    size = one.matrix.cells[0].records[0].size_bytes
    return ExportedCase(
        scenario=key.scenario,
        workload=key.workload,
        size_bytes=size,
        treatment=key.treatment,
        testbed=key.testbed,
    )


def _tests(settings: Iterable[ExportedSetting], client: str, server: str) -> list[CaseResult]:
    return [
        CaseResult(abbr=one.abbr, name=one.name, result=result, error_code=code, trials=_trials(cell))
        for one in settings
        if not one.measured and (cell := _cell(one, client, server)) is not None
        for result, code in [_result(record.outcome for record in cell.records)]
    ]


def _measurements(settings: Iterable[ExportedSetting], client: str, server: str) -> list[MeasuredResult]:
    return [
        _measurement(one, cell)
        for one in settings
        if one.measured and (cell := _cell(one, client, server)) is not None
    ]


def _not_applicable(
    settings: Iterable[ExportedSetting], client: str, server: str, cannot: Collection[Combination]
) -> Iterator[dict[str, Any]]:
    """Test cases that a client and a server lack have no trials; the runner calls them unsupported."""
    for one in settings:
        key = one.matrix.key
        if Combination(key.workload, key.treatment, client, server) in cannot:
            code = test_cases.code("unsupported")
            yield {
                "abbr": one.abbr,
                "name": one.name,
                "result": "unsupported",
                "error_code": code,
                "trials": [],
            }


def _measurement(one: ExportedSetting, cell: Cell) -> MeasuredResult:
    result, code = _result(record.outcome for record in cell.records)
    values = one.values_kbps(cell)
    if result == "succeeded" and len(values) < len(cell.records):
        result, code = "failed", test_cases.NO_GOODPUT
    return MeasuredResult(
        abbr=one.abbr,
        name=one.name,
        result=result,
        error_code=code,
        details=_details(values, cell) if result == "succeeded" else "",
        values=values,
        trials=_trials(cell),
    )


def _details(values: Sequence[float], cell: Cell) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else goodput.deviation(cell.records[0].detail)
    spread = "" if deviation is None else f" (± {deviation:.0f})"
    return f"{statistics.mean(values):.0f}{spread} kbps"


def _result(outcomes: Iterable[Outcome]) -> tuple[Result, str | None]:
    """The runner's word for all iterations, and the fork's for why they failed: that of the most."""
    other = Counter(outcome for outcome in outcomes if outcome != "ok")
    failures = [(outcome, count) for outcome, count in other.most_common() if outcome != "unsupported"]
    if failures:
        return "failed", test_cases.code(failures[0][0])
    return ("unsupported", test_cases.code("unsupported")) if other else ("succeeded", None)


def _trials(cell: Cell) -> list[ExportedTrial]:
    return [
        ExportedTrial(iteration=one.iteration, outcome=one.outcome, goodput_bps=one.goodput_bps)
        for one in cell.records
    ]


def _cell(one: ExportedSetting, client: str, server: str) -> Cell | None:
    ends = (client, server)
    return next((cell for cell in one.matrix.cells if (cell.key.client, cell.key.server) == ends), None)


def _image(label: str, manifest: Manifest, records: Iterable[Record]) -> Image:
    """The fork's description of an implementation: its versions, and whether it takes unknown test cases."""
    versions = {
        version
        for record in records
        for end, version in ((record.client, record.client_version), (record.server, record.server_version))
        if end == label and version
    }
    stack = labels.variant(label).stack
    breaches = [who for who in manifest.contract_breaches if who.partition(" ")[0] == stack]
    return Image(versions=sorted(versions), compliant=False if breaches else None)


def _notes(manifest: Manifest, settings: Iterable[ExportedSetting]) -> list[str]:
    notes = [] if manifest.finished else ["the run has not finished: its end is that of its beginning"]
    own = [one.abbr for one in settings if one.measured and not one.is_timed]
    is_the_runners = manifest.plan.testbed == RUNNER and manifest.campaign == CAMPAIGN
    if own and not is_the_runners:
        why = "trials have no time between 1-RTT packets"
        notes.append(f"{', '.join(own)}: goodput from the first data on, higher than the runner's: {why}")
    return notes


def _seconds(text: str) -> float:
    """A time of a manifest; 0 for one that is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def _number(values: Mapping[str, Any], key: str) -> float | None:
    value = values.get(key)
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if known else None
