"""The page of a trial as an HTTP Archive, which other tools open.

Virtual time begins on 1 January 2000. When a trial in real time began is not kept: there it is when the run
did.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bentpipe import workload
from bentpipe.analysis import page_requests
from bentpipe.analysis.traces import TracedRun
from bentpipe.errors import UsageError
from bentpipe.runs import manifest
from bentpipe.runs.records import Record
from bentpipe.runs.trial_files import REQUESTS
from bentpipe.testbed import TESTBEDS
from bentpipe.workload.page.har_writer import LoadedPage, har

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_NO_TRIAL = "give a trial's folder in a run: bentpipe page har RUN/trials/ID"
_NOT_KEPT = "runs keep those of each cell's median trial; to keep all: bentpipe run … --trace all"


def of_trial(folder: Path) -> dict[str, Any]:
    """The archive of the trial in RUN/trials/ID, as JSON has it. UsageError, naming the folder, if there is
    no such trial or none that loaded a page and kept its requests; BentpipeError if a file of it cannot be
    read.
    """
    record, run = _record(folder)
    if not workload.is_page(record.workload):
        raise UsageError(
            f"{folder}: loaded no page, but {workload.title(record.workload)}",
            "give a trial of a page, as of --workload page:kosek",
        )
    try:
        found = page_requests.in_order_of_asking(page_requests.of_trial(folder, record))
    except FileNotFoundError:
        raise UsageError(f"{folder / REQUESTS}: there is no such file", _NOT_KEPT) from None
    what = f"{workload.title(record.workload)}, {record.client} to {record.server} over {record.scenario}"
    loaded = LoadedPage(
        title=what,
        client=record.client,
        version=record.client_version,
        alpn=record.alpn,
        started=_EPOCH if TESTBEDS[record.testbed].repeats else _started(run),
        dcl_s=record.dcl_s,
        plt_s=record.plt_s,
        requests=tuple(found.requests),
    )
    return har(loaded)


def _record(folder: Path) -> tuple[Record, Path]:
    """The trial's record, and the folder of its run."""
    run = folder.resolve().parent.parent
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder", _NO_TRIAL)
    if not (run / manifest.FILE).is_file():
        raise UsageError(f"{folder}: is no trial of a run", _NO_TRIAL)
    record = TracedRun.read(run).records.get(folder.resolve().name)
    if record is None:
        raise UsageError(f"{folder}: the run has no record of such a trial", _NO_TRIAL)
    return record, run


def _started(run: Path) -> datetime:
    try:
        return datetime.fromisoformat(manifest.read(run).started).astimezone(UTC)
    except ValueError:
        return _EPOCH
