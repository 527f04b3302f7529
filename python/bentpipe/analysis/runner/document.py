"""A `result.json`: its keys, and how one is written.

Clients are the rows of both matrices, servers the columns: the entry of client c and server s is number
c · servers + s. What a file has beyond these keys is passed over, as the runner's own pages do.

Checked against the runner's sources of April 2026 (1d6f655): `_export_results` and `_run_measurement` of
interop.py, .github/workflows/aggregate.py, which puts the files of single pairs together, and web/script.js.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from bentpipe.schema.record import Outcome

CAMPAIGN = "interop-runner"  # what a run is called that was made of a file of the runner's own

Result = Literal["succeeded", "failed", "unsupported"]


class CaseText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The description of a test case or a measurement in a file."""

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
    """The result of a test case with one client and one server; `result` is null where it was not run."""

    abbr: str
    name: str = ""  # absent in files of the fork
    result: Result | None
    error_code: str | None = None
    trials: list[ExportedTrial] | None = None


class MeasuredResult(CaseResult, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a measurement. The page shows `details` even if it is empty."""

    details: str = ""
    values: list[float] | None = None


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """The fork's description of an implementation."""

    image: str | None = ""
    id: str | None = None
    repo_digests: list[str] | None = []
    versions: list[str] | None = []
    created: str | None = None
    compliant: bool | None = None


class ExportedCase(msgspec.Struct, frozen=True, kw_only=True):
    """The setting, in the run that Bentpipe wrote, of a test case or measurement."""

    scenario: str
    workload: str
    size_bytes: int
    treatment: str
    testbed: str


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The key `bentpipe`, with everything that has no place in the rest of the file."""

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
    quic_draft: int | None = None  # until March 2026
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
