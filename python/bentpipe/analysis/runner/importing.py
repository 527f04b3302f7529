"""A `result.json` of the runner as a run: a manifest, and a record for each value that it has.

A measurement of a known name has the runner's file of 10 MiB as its workload; of all else the file does not
say what was transferred, and its workload is the runner's name alone. Its scenario has the runner's name too:
that of `sat`, `satloss`, `goodput`, `astra` and `eutelsat` is the same path as Bentpipe's. In a file that
Bentpipe wrote, all is what it was.

What the runner does not know is null, 0 or empty. Where a file has no values, only their mean and deviation,
as the runner writes it, one record stands for them. A pair of which nothing was run has no record, and its
client and server are in the plan.
"""

from __future__ import annotations

import hashlib
import html
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import bentpipe
from bentpipe import labels
from bentpipe.analysis.runner import goodput, reader, test_cases
from bentpipe.analysis.runner.document import (
    CAMPAIGN,
    CaseResult,
    CaseText,
    ExportedCase,
    Image,
    MeasuredResult,
    ResultFile,
)
from bentpipe.analysis.runner.goodput import KBIT
from bentpipe.plan.campaign import Plan
from bentpipe.plan.treatments import DIRECT
from bentpipe.plan.trial import Trial
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import Record
from bentpipe.runs.run_folder import RunFolder
from bentpipe.schema.manifest import ScenarioState, StackState
from bentpipe.schema.record import Outcome
from bentpipe.testbed import RUNNER

_UNSAID = "the runner does not say why"


@dataclass(frozen=True)
class _Repetition:
    """One trial of an entry, as far as the file has it."""

    iteration: int
    outcome: Outcome
    goodput_bps: float | None = None
    detail: str = ""


@dataclass(frozen=True)
class ImportedRun:
    """A file, imported as a run."""

    path: Path
    file: ResultFile
    unread: list[str]  # what of the file cannot be read, with its place and why
    not_run: list[tuple[str, str]]  # clients and servers

    @classmethod
    def read(cls, path: Path) -> ImportedRun:
        """The file at `path`; UsageError or BentpipeError, with the key and the value, if it is not valid."""
        found = reader.read(path)
        return cls(path, found.file, found.unread, found.not_run)

    @property
    def started(self) -> str:
        return _time(self.file.start_time)

    @property
    def campaign(self) -> str:
        return self.file.bentpipe.campaign if self.file.bentpipe else CAMPAIGN

    @cached_property
    def records(self) -> list[Record]:
        """A record for each trial that the file knows of."""
        return [
            self._record(entry, self._variant(client), self._variant(server), one)
            for client, server, tests, measured in self.file.pairs()
            for entry in (*tests, *measured)
            for one in _repetitions(entry)
        ]

    def manifest(self) -> Manifest:
        """The manifest: the file's origin, and what it says of paths and stacks."""
        records = self.records
        scenarios, workloads, treatments = (
            tuple(dict.fromkeys(getattr(record, column) for record in records))
            for column in ("scenario", "workload", "treatment")
        )
        title = f"{self.path.name} of the QUIC interop runner"
        return Manifest(
            campaign=self.campaign,
            title=title,
            options=Plan(
                name=self.campaign,
                title=title,
                scenarios=scenarios,
                clients=tuple(map(self._variant, self.file.clients)),
                servers=tuple(map(self._variant, self.file.servers)),
                seed=0,
                iterations=max((record.iteration for record in records), default=1),
                workloads=workloads,
                treatments=treatments,
                testbed=RUNNER,
            ),
            command=shlex.join(["bentpipe", *sys.argv[1:]]),
            started=self.started,
            finished=_time(self.file.end_time),
            versions={
                "bentpipe": bentpipe.__version__,
                "imported": self._source(),
                "stacks": {name: ", ".join(found) for name, found in self._versions().items()},
            },
            host={},
            scenarios={one: ScenarioState(scenario={}, summary=self._summary(one)) for one in scenarios},
            stacks={name: StackState(title=name) for name in self._stacks()},
            left_out={},
            contract_breaches=self._breaches(),
        )

    def write(self, folder: Path) -> None:
        """Write it as the run in `folder`, which must be empty or not there. UsageError if it is not;
        DiskError if it cannot be written.
        """
        run = RunFolder.create(folder)
        try:
            run.write_manifest(self.manifest())
            for record in self.records:
                run.append(record)
            run.seal([record.trial for record in self.records])
        finally:
            run.close()

    def _record(self, entry: CaseResult, client: str, server: str, one: _Repetition) -> Record:
        case, text = self._case(entry), self.file.tests.get(entry.abbr)
        trial = Trial(
            campaign_seed=0,
            scenario=case.scenario,
            workload=case.workload,
            size_bytes=case.size_bytes,
            client=client,
            server=server,
            iteration=one.iteration,
            treatment=case.treatment,
            testbed=RUNNER,
        )
        return Record(
            trial=trial.id,
            scenario=case.scenario,
            workload=case.workload,
            size_bytes=case.size_bytes,
            client=client,
            server=server,
            treatment=case.treatment,
            testbed=RUNNER,
            iteration=one.iteration,
            seed="",
            outcome=one.outcome,
            detail=one.detail,
            goodput_bps=one.goodput_bps,
            efficiency=_efficiency(one.goodput_bps, text),
            client_version=self._version(client),
            server_version=self._version(server),
        )

    def _case(self, entry: CaseResult) -> ExportedCase:
        origin, name = self.file.bentpipe, self.file.name(entry)
        if origin and entry.abbr in origin.cases:
            return origin.cases[entry.abbr]
        known = test_cases.MEASUREMENTS.get(name) if isinstance(entry, MeasuredResult) else None
        return ExportedCase(
            scenario=name,
            workload=known.workload if known else name,
            size_bytes=known.size_bytes if known else 0,
            treatment=DIRECT,
            testbed=RUNNER,
        )

    @cached_property
    def _texts(self) -> dict[str, CaseText]:
        """The descriptions in the file of the first test case of each scenario."""
        found: dict[str, CaseText] = {}
        for _, _, tests, measured in self.file.pairs():
            for entry in (*tests, *measured):
                if (text := self.file.tests.get(entry.abbr)) is not None:
                    found.setdefault(self._case(entry).scenario, text)
        return found

    def _variant(self, name: str) -> str:
        return self.file.bentpipe.names.get(name, name) if self.file.bentpipe else name

    @cached_property
    def _implementations(self) -> dict[str, Image | None]:
        """Variants → what the file says of them."""
        images = self.file.images or {}
        names = dict.fromkeys([*self.file.clients, *self.file.servers])
        return {self._variant(name): images.get(name) for name in names}

    def _stacks(self) -> list[str]:
        return sorted({labels.variant(one).stack for one in self._implementations})

    def _versions(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for label, image in self._implementations.items():
            for version in (image and image.versions) or []:
                known = found.setdefault(labels.variant(label).stack, [])
                known += [version] if version not in known else []
        return found

    def _version(self, label: str) -> str:
        image = self._implementations.get(label)
        return ", ".join((image and image.versions) or [])

    def _breaches(self) -> dict[str, str]:
        """Implementations that the fork found to take a test case that it does not know."""
        images = self._implementations.items()
        return {f"{name} as client or server": "not compliant, says the runner"
                for name, image in images if image is not None and image.compliant is False}  # fmt: skip

    def _source(self) -> dict[str, Any]:
        return {
            "file": self.path.name,
            "sha256": hashlib.sha256(self.path.read_bytes()).hexdigest(),
            "log_dir": self.file.log_dir,
            "quic_version": self.file.quic_version,
            "not_run": [f"{client} with {server}" for client, server in self.not_run],
            "not_read": self.unread,
        }

    def _summary(self, scenario: str) -> dict[str, Any]:
        """The description of a path in the file."""
        text = self._texts.get(scenario)
        if text is None:
            return {"name": scenario}
        rate = text.theoretical_max_value
        return {
            "name": scenario,
            "title": html.unescape(text.desc),
            **({} if text.timeout is None else {"timeout_s": text.timeout}),
            **({} if rate is None else {"forward_rate_bps": rate * KBIT}),
        }


def _repetitions(entry: CaseResult) -> Iterator[_Repetition]:
    """The trials in an entry; none if it was not run."""
    values = (entry.values or []) if isinstance(entry, MeasuredResult) else []
    mean = goodput.parse(entry.details) if isinstance(entry, MeasuredResult) and entry.details else None
    note = mean.note if mean and len(values) < 2 else ""
    if entry.trials is not None:
        for one in entry.trials:
            yield _Repetition(one.iteration, one.outcome, one.goodput_bps, note)
        return
    if mean is not None and not values:
        values = [mean.mean]
    for number, value in enumerate(values, start=1):
        yield _Repetition(number, "ok", value * KBIT, note)
    if entry.result == "unsupported":
        yield _Repetition(len(values) + 1, "unsupported", detail=entry.error_code or "")
    elif entry.result == "failed":
        detail = entry.error_code or _UNSAID
        yield _Repetition(len(values) + 1, test_cases.outcome(entry.error_code), detail=detail)
    elif entry.result == "succeeded" and not isinstance(entry, MeasuredResult):
        yield _Repetition(1, "ok")


def _efficiency(goodput_bps: float | None, text: CaseText | None) -> float | None:
    most = text.theoretical_max_value if text else None
    return goodput_bps / (most * KBIT) if goodput_bps is not None and most else None


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
