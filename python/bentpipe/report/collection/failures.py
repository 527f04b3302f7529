"""Trials that did not end well, grouped by outcome and detail.

Details that differ in their numbers alone, as `7340032 of 10485760 bytes after 120 s` and `9961472 of …`, are
one group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bentpipe.analysis.comparison import ComparedKey
from bentpipe.report.collection.columns import compared_key
from bentpipe.report.collection.links import ReportLinks
from bentpipe.runs.records import CellKey, Record

# Not what is a name: a digit in a word, an exit code, a signal.
_NUMBER = re.compile(r"(?<![\w.-])(?<!code )(?<!status: )(?<!signal )\d[\d.,]*(?<![.,])")
PLACE = "…"


@dataclass(frozen=True, slots=True)
class FailedTrial:
    """A trial that did not end well."""

    outcome: str
    detail: str
    cell: CellKey
    iteration: int
    trial: str
    href: str | None  # to the page of its cell, if there is one


@dataclass
class FailureGroup:
    """Trials with the same outcome and, but for numbers, the same detail."""

    outcome: str
    detail: str  # with a sign in place of each number in which they differ
    example: str
    trials: list[dict[str, Any]] = field(default_factory=list)


def failed_trial(record: Record, cell: CellKey, links: ReportLinks) -> FailedTrial:
    """The trial that a record of this cell is of."""
    return FailedTrial(
        record.outcome, record.detail, cell, record.iteration, record.trial, links.of_cell(cell)
    )


def groups(runs: Sequence[Sequence[FailedTrial]], cells: Mapping[ComparedKey, int]) -> list[dict[str, Any]]:
    """The groups of the runs' failed trials as JSON values, the largest first, and the unsupported ones,
    which are no failures, last.
    """
    found: dict[tuple[str, str], FailureGroup] = {}
    for number, trials in enumerate(runs):
        for one in trials:
            detail = pattern(one.detail)
            group = found.setdefault((one.outcome, detail), FailureGroup(one.outcome, detail, one.detail))
            group.trials.append(
                {
                    "run": number,
                    "cell": cells[compared_key(one.cell)],
                    "iteration": one.iteration,
                    "trial": one.trial,
                    "href": one.href,
                }
            )
    ordered = sorted(found.values(), key=lambda group: (group.outcome == "unsupported", -len(group.trials)))
    return [
        {
            "outcome": group.outcome,
            "detail": group.detail,
            "example": group.example,
            "failed": group.outcome != "unsupported",
            "trials": group.trials,
        }
        for group in ordered
    ]


def pattern(detail: str) -> str:
    """The detail with a sign in place of each number."""
    return _NUMBER.sub(PLACE, detail)
