"""The part of a run that a site keeps while the others are read: its columns, its failures, its results."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from bentpipe.report.collection.columns import RunColumns
from bentpipe.report.collection.failures import FailedTrial, failed_trial
from bentpipe.report.collection.links import ReportLinks
from bentpipe.report.outline import RunOutline
from bentpipe.runs import run_folder
from bentpipe.runs.manifest import stack_versions
from bentpipe.runs.records import without_courses
from bentpipe.runs.several import FoundRun
from bentpipe.runs.table import groups


@dataclass
class ReadRun:
    """A run of the site."""

    name: str
    outline: RunOutline
    links: ReportLinks
    columns: RunColumns = field(default_factory=RunColumns)
    outcomes: Counter[str] = field(default_factory=Counter)  # outcome → trials
    failed: int = 0
    not_ok: list[FailedTrial] = field(default_factory=list)
    stack_versions: dict[str, str] = field(default_factory=dict)  # as the stacks said them


def read(run: FoundRun, site: Path) -> ReadRun:
    """Read the records of a run, some at a time; `site` is the folder that links lead from. BentpipeError if
    it has none, or some that cannot be read.
    """
    with closing(run_folder.stored(run.folder)) as stored:
        outline = RunOutline(run.folder, run.manifest, stored.cells)
        made = ReadRun(run.name, outline, ReportLinks(outline, site))
        cells = {key: key for key in stored.cells}  # so that each is in memory once
        for group in groups(map(without_courses, stored)):
            made.columns.add(group)
            made.outcomes.update(record.outcome for record in group)
            made.failed += sum(record.failed for record in group)
            made.not_ok += [
                failed_trial(record, cells[record.cell_key], made.links) for record in group if not record.ok
            ]
            made.stack_versions |= stack_versions(group)
    return made
