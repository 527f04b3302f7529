"""Several runs at once: which of many folders can be read, what they are called, one table of their trials.

A name is that of the folder, with as many of the folders above it as tell it apart from the others.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bentpipe.errors import BentpipeError
from bentpipe.runs import run_folder
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import Record

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class NamedRun:
    """A run among others, in the order of whose `started` they stand."""

    name: str
    folder: Path
    manifest: Manifest
    records: list[Record]


@dataclass(frozen=True)
class SkippedFolder:
    """A folder that is left out, and why."""

    folder: Path
    why: str


@dataclass(frozen=True)
class SeveralRuns:
    """What was found in several folders."""

    runs: tuple[NamedRun, ...]
    skipped: tuple[SkippedFolder, ...]


def read(folders: Iterable[Path], *, courses: bool = True) -> SeveralRuns:
    """The runs in `folders`, each once, the one that started first first. A folder that is no run, or has no
    records, or of a format that cannot be read, is skipped. Without `courses` records have no curves, which
    are most of what they take in memory.
    """
    places = list({folder.resolve(): folder for folder in folders}.values())
    runs, skipped = [], []
    for folder, name in zip(places, names(places), strict=True):
        try:
            found, records = run_folder.read(folder, courses=courses)
        except BentpipeError as error:
            skipped.append(SkippedFolder(folder, str(error)))
            continue
        runs.append(NamedRun(name, folder, found, records))
    return SeveralRuns(tuple(sorted(runs, key=lambda run: (run.manifest.started, run.name))), tuple(skipped))


def trials(folders: Iterable[Path]) -> pa.Table:
    """All trials of the runs in `folders`, a row each: `run`, the run's name, and `started`, when it began
    (UTC, as in its manifest), then the columns of `records.parquet`. BentpipeError if no folder can be read;
    of one that cannot while others can, a warning says why.
    """
    from bentpipe.runs.table import of_runs

    found = read(folders)
    for one in found.skipped:
        warnings.warn(f"left out: {one.why}", stacklevel=2)
    if not found.runs:
        raise nothing_to_read(found)
    return of_runs(found.runs)


def nothing_to_read(found: SeveralRuns) -> BentpipeError:
    """The error for folders of which none can be read."""
    if not found.skipped:
        return BentpipeError("no runs are given", "give the folders of runs, as in runs/*")
    more = f", and {len(found.skipped) - 1} more are none either" if len(found.skipped) > 1 else ""
    return BentpipeError(f"no runs to read: {found.skipped[0].why}{more}", "give folders of finished runs")


def names(folders: Sequence[Path]) -> list[str]:
    """A name for each folder that no other one has."""
    parts = [folder.resolve().parts for folder in folders]
    depth = [1] * len(folders)
    while True:
        found = ["/".join(one[-count:]) for one, count in zip(parts, depth, strict=True)]
        often = Counter(found)
        short = [
            place for place, name in enumerate(found) if often[name] > 1 and depth[place] < len(parts[place])
        ]
        if not short:
            return found
        for place in short:
            depth[place] += 1
