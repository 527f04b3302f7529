"""Trials that did not end well, grouped by outcome and by what was said of them.

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
from bentpipe.runs.several import NamedRun

# Not what is a name: a digit in a word, an exit code, a signal.
_NUMBER = re.compile(r"(?<![\w.-])(?<!code )(?<!status: )(?<!signal )\d[\d.,]*(?<![.,])")
PLACE = "…"


@dataclass
class FailureGroup:
    """Trials with the same outcome and, but for numbers, the same detail."""

    outcome: str
    detail: str  # with a sign in place of each number in which they differ
    example: str
    trials: list[dict[str, Any]] = field(default_factory=list)


def groups(
    runs: Sequence[NamedRun], cells: Mapping[ComparedKey, int], links: Sequence[ReportLinks]
) -> list[dict[str, Any]]:
    """The groups as JSON values, the largest first, and those of what is not offered, which is no failure,
    last. `links` are those of the runs' reports.
    """
    found: dict[tuple[str, str], FailureGroup] = {}
    for number, (run, pages) in enumerate(zip(runs, links, strict=True)):
        for record in run.records:
            if record.ok:
                continue
            detail = pattern(record.detail)
            group = found.setdefault(
                (record.outcome, detail), FailureGroup(record.outcome, detail, record.detail)
            )
            group.trials.append(
                {
                    "run": number,
                    "cell": cells[compared_key(record)],
                    "iteration": record.iteration,
                    "trial": record.trial,
                    "href": pages.of_trial(record),
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
