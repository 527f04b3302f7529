"""The page on fairness: what flows leave each other that share a path."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe import flows, workload
from bentpipe.errors import BentpipeError
from bentpipe.records import Record
from bentpipe.results import footing
from bentpipe.results.markdown import literal, mbit, percent, several, table
from bentpipe.results.source import Source
from bentpipe.statistics import Cell, cells

_FAIR = 0.9
_HOW = """**Jain's index** is that of the flows' goodputs over the time in which all of them are there: 1
where all have the same, 1/n where one of n has everything. Told is the median over the trials, in
brackets the worst of them. Behind it the goodput of each flow in Mbit/s, in the order in which
they start, and what the queue towards the clients dropped, in percent of the packets of all
flows. In bold where the worst trial has at least {}."""
SOURCES = {
    "index": "R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination for Resource "
    "Allocation in Shared Computer Systems, DEC Research Report TR-301, 1984"
}


@dataclass(frozen=True)
class Page:
    """What the page is written from."""

    source: Source

    @cached_property
    def cells(self) -> list[Cell]:
        return [
            one for one in cells(self.source.in_order) if any(r.jain_index is not None for r in one.records)
        ]

    @cached_property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(one.key.scenario for one in self.cells))

    @cached_property
    def sets(self) -> list[str]:
        """Workloads: each with another set of further flows."""
        return list(dict.fromkeys(one.key.workload for one in self.cells))

    @cached_property
    def servers(self) -> list[str]:
        return list(dict.fromkeys(one.key.server for one in self.cells))


def write(source: Source, folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if no trial of the run had several flows."""
    page = Page(source)
    if not page.cells:
        raise BentpipeError(
            f"{source.folder}: wanted are trials of several flows, as with --flow; the run has none "
            f"that was measured",
            "make such a run with: bentpipe run fairness",
        )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "fairness.md"
    path.write_text("\n\n".join(_sections(page)) + "\n")
    return [path]


def _sections(page: Page) -> list[str]:
    parts = ["# Flows that share a path", _opening(page), _HOW.format(_FAIR), _unfair(page)]
    for scenario in page.scenarios:
        parts += [f"## {literal(scenario)}", _over(page, scenario)]
    return [*parts, *footing.failures(page.source.records), *footing.made(page.source, SOURCES)]


def _opening(page: Page) -> str:
    count = max(len(one.records) for one in page.cells)
    listed = "\n".join(f"- {_beside(one)}" for one in page.sets)
    return (
        f"{several(len(page.servers), 'variant')} as the server of the flow that starts first, over "
        f"{several(len(page.scenarios), 'path')}, {several(count, 'trial')} of each, beside:\n\n{listed}"
    )


def _beside(label: str) -> str:
    """A set of further flows, in words."""
    moved = workload.parse(label, "the run")
    texts = []
    for one in flows.of(moved):
        who = "one of its own kind" if one.server is None else literal(one.server)
        texts.append(f"{who} from {one.start_ms / 1000:g} s on")
    return ", ".join(texts)


def _unfair(page: Page) -> str:
    """Where the worst trial among equals starves one."""
    found = [
        f"{literal(one.key.server)} over {literal(one.key.scenario)}"
        for one in page.cells
        if _among_equals(one) and min(_indices(one)) < _FAIR
    ]
    equal = sum(_among_equals(one) for one in page.cells)
    if not found:
        return f"Among equals the index is at least {_FAIR} in every trial of {several(equal, 'setting')}."
    return (
        f"Among equals it falls below {_FAIR} in at least a trial of {len(found)} of "
        f"{several(equal, 'setting')}: "
        f"{'; '.join(dict.fromkeys(found))}."
    )


def _among_equals(cell: Cell) -> bool:
    return all(one.server is None for one in flows.of(workload.parse(cell.key.workload, "the run")))


def _over(page: Page, scenario: str) -> str:
    by_key = {(one.key.server, one.key.workload): one for one in page.cells if one.key.scenario == scenario}
    rows = [
        [literal(server), _beside(beside), *_measured(by_key[server, beside])]
        for beside in page.sets
        for server in page.servers
        if (server, beside) in by_key
    ]
    return table(["first flow", "beside", "Jain's index", "goodputs, Mbit/s", "dropped"], rows, left=2)


def _measured(cell: Cell) -> list[str]:
    indices = _indices(cell)
    middle, worst = statistics.median(indices), min(indices)
    index = f"{middle:.2f} ({worst:.2f})"
    known = [one for one in cell.records if one.jain_index is not None]
    each = zip(*(_goodputs(one) for one in known), strict=True)
    goodputs = " / ".join(mbit(statistics.median(values)) for values in each)
    return [f"**{index}**" if worst >= _FAIR else index, goodputs, percent(_dropped(known))]


def _indices(cell: Cell) -> list[float]:
    return [one.jain_index for one in cell.records if one.jain_index is not None]


def _goodputs(record: Record) -> list[float]:
    return [one["goodput_bps"] or 0.0 for one in record.flows]


def _dropped(records: Sequence[Record]) -> float:
    """Of the packets of all flows."""
    return statistics.median(_sum(one, "queue_drops") / (_sum(one, "packets") or 1) for one in records)


def _sum(record: Record, what: str) -> int:
    return sum(int(one[f"forward_{what}"]) for one in record.flows)
