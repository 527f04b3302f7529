"""Table 5.2 of the thesis, which takes values from other papers, beside ours over the same nominal links."""

from __future__ import annotations

import statistics

from bentpipe.study.markdown import literal, table
from bentpipe.study.published import Table, read

from .runs import LITERATURE, ThesisRuns, short

_TEXT = """Seconds until a file is there, as table 5.2 has them, and here the median over the trials of each
stack with itself, {}: the fastest and the slowest of these. Real links are nominal here: a fixed rate and
delay, a queue of 1 BDP, no losses. Where the source loaded a web site of that size, one file stands
for it."""


class LiteratureRow(Table, frozen=True):
    """A row of the table: what was published, and the scenario and workload that stand beside it."""

    source: str
    stack: str
    scenario: str
    workload: str
    time_s: float


class _File(Table, frozen=True):
    rows: list[LiteratureRow]


def section(runs: ThesisRuns) -> list[str]:
    """The section; empty without its run."""
    source = runs.beside(LITERATURE)
    if source is None:
        return []
    rows, used = [], set()
    for one in read(__file__, _File, "literature.toml").rows:
        times: dict[str, list[float]] = {}
        for record in source.records:
            mine = (record.scenario, record.workload) == (one.scenario, one.workload)
            if mine:
                used.add(record.trial)
            if mine and record.ok and record.completion_s:
                times.setdefault(record.server, []).append(record.completion_s)
        medians = sorted((statistics.median(known), server) for server, known in times.items())
        if not medians:
            continue
        first, last = medians[0], medians[-1]
        same = next((f"{time:.1f}" for time, server in medians if short(server) == one.stack), "-")
        rows.append(
            [
                literal(one.source),
                one.stack or "not stated",
                one.scenario,
                f"{one.time_s:.1f}",
                same,
                f"{first[0]:.1f}, {short(first[1])}",
                f"{last[0]:.1f}, {short(last[1])}",
            ]
        )
    head = [
        "source",
        "stack",
        "scenario here",
        "there, s",
        "here, same stack",
        "fastest here",
        "slowest here",
    ]
    who = ", ".join(literal(short(one)) for one in dict.fromkeys(r.server for r in source.records))
    count = f"{len(used)} trials."
    parts = ["## Beside other papers (table 5.2)", _TEXT.format(who), table(head, rows, left=3), count]
    return parts if rows else []
