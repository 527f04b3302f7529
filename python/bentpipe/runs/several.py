"""Several runs at once: which of many folders can be read, what they are called, one table of their trials.

A name is that of the folder, with as many of the folders above it as tell it apart from the others.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bentpipe.errors import BentpipeError
from bentpipe.runs import manifest, run_folder
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import Record

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


@dataclass(frozen=True)
class FoundRun:
    """A run among others."""

    name: str
    folder: Path
    manifest: Manifest


@dataclass(frozen=True)
class NamedRun(FoundRun):
    """A run among others, with its records."""

    records: list[Record]


@dataclass(frozen=True)
class SkippedFolder:
    """A folder that is left out, and why."""

    folder: Path
    why: str


@dataclass(frozen=True)
class SeveralRuns(Generic[T]):
    """The results for the runs in several folders, in the order in which the runs started."""

    runs: tuple[T, ...]
    skipped: tuple[SkippedFolder, ...]


def each(folders: Iterable[Path], make: Callable[[FoundRun], T]) -> SeveralRuns[T]:
    """Call `make` for each of the runs in `folders`, one after the other. A folder that is no run is skipped,
    as is one for which `make` raises a BentpipeError.
    """
    places = list({folder.resolve(): folder for folder in folders}.values())
    made: list[tuple[FoundRun, T]] = []
    skipped = []
    for folder, name in zip(places, names(places), strict=True):
        try:
            run = FoundRun(name, folder, manifest.read(folder))
            made.append((run, make(run)))
        except BentpipeError as error:
            skipped.append(SkippedFolder(folder, str(error)))
    made.sort(key=lambda pair: (pair[0].manifest.started, pair[0].name))
    return SeveralRuns(tuple(one for _, one in made), tuple(skipped))


def read(folders: Iterable[Path]) -> SeveralRuns[NamedRun]:
    """The runs in `folders`. One without records, or of a format that cannot be read, is skipped."""
    return each(
        folders,
        lambda run: NamedRun(run.name, run.folder, run.manifest, run_folder.read_records(run.folder)),
    )


def trials(folders: Iterable[Path]) -> pa.Table:
    """All trials of the runs in `folders`, a row each: `run`, the run's name, and `started`, when it began
    (UTC, as in its manifest), then the columns of `records.parquet`. BentpipeError if no folder can be read;
    if only some cannot, a warning for each says why.
    """
    from bentpipe.runs.table import of_runs

    found = read(folders)
    for one in found.skipped:
        warnings.warn(f"left out: {one.why}", stacklevel=2)
    if not found.runs:
        raise nothing_to_read(found)
    return of_runs((run.name, run.manifest.started, run.records) for run in found.runs)


def nothing_to_read(found: SeveralRuns[Any]) -> BentpipeError:
    """The error for folders none of which can be read."""
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
