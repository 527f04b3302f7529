"""The page on fairness: what flows leave each other that share a path, of QUIC among themselves and beside
TCP.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe import workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.plan import flows
from bentpipe.plan.flows import FurtherFlow
from bentpipe.runs.records import Record
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import literal, mbit, path, percent, several, table, trials
from bentpipe.study.source import Source, pooled

from . import beside_tcp

_FAIR = 0.9
_HOW = """**Jain's index** is that of the flows' goodputs over the time in which all of them are there: 1
where all have the same, 1/n where one of n has everything. The tables show the median over the trials, in
brackets the worst of them. Behind it the goodput of each flow in Mbit/s, in the order in which they start,
and what the queue towards the clients dropped, in percent of the packets of all flows. In bold where the
worst trial has at least {}."""
SOURCES = {
    "index": "R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination for Resource "
    "Allocation in Shared Computer Systems, DEC Research Report TR-301, 1984"
}


@dataclass(frozen=True)
class Page:
    """The runs of a page, and their cells."""

    sources: tuple[Source, ...]

    @cached_property
    def cells(self) -> list[Cell]:
        """Of all runs in virtual time."""
        records = pooled(one for one in self.sources if not one.is_real_time)
        return [one for one in cells(records) if any(r.jain_index is not None for r in one.records)]

    @cached_property
    def real(self) -> list[Cell]:
        """Of all runs in real time."""
        records = pooled(one for one in self.sources if one.is_real_time)
        return [one for one in cells(records) if any(r.jain_index is not None for r in one.records)]

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


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write to `folder` the page of the runs of QUIC alone, and that of those with TCP, as far as they are
    there. BentpipeError if no trial of a run had several flows.
    """
    files = []
    for name, write_sections in (("fairness", _sections), ("fairness-tcp", _sections_tcp)):
        mine = tuple(one for one in runs if _has_tcp(one) == name.endswith("tcp"))
        if not mine:
            continue
        page = Page(mine)
        if not page.cells:
            raise mine[0].refused(
                "wanted are trials of several flows, as with --flow; the run has none that was measured",
                f"run {name}",
            )
        file = folder / f"{name}.md"
        file.write_text(markdown.page(write_sections(page)))
        files.append(file)
    return files


def _has_tcp(source: Source) -> bool:
    return any(one.transport == "tcp" for one in source.records)


def _sections(page: Page) -> list[str]:
    parts = ["# Flows that share a path", _opening(page), _HOW.format(_FAIR), _equals(page)]
    return [*parts, *_paths(page), *closing.of_all(page.sources, SOURCES)]


def _sections_tcp(page: Page) -> list[str]:
    parts = ["# Flows of TCP and QUIC that share a path", _opening(page)]
    parts += beside_tcp.sections(page.cells, page.real)
    parts += ["## In numbers", _HOW.format(_FAIR)]
    return [*parts, *_paths(page), *closing.of_all(page.sources, SOURCES)]


def _paths(page: Page) -> list[str]:
    return [part for one in page.scenarios for part in (f"## {path(one)}", _over(page, one))]


def _opening(page: Page) -> str:
    counts = {len(one.records) for one in page.cells}
    listed = "\n".join(f"- {_starts(one)}" for one in page.sets)
    return (
        f"{several(len(page.servers), 'variant')} as the server of the flow that starts first, over "
        f"{several(len(page.scenarios), 'path')}, {trials(counts)} of each, beside:\n\n{listed}"
    )


def _starts(label: str) -> str:
    """A set of further flows, with when they start."""
    starts = [f"{one.start_ms / 1000:g}" for one in _further(label)]
    listed = starts[0] if len(starts) == 1 else f"{', '.join(starts[:-1])} and {starts[-1]}"
    return f"{_beside(label)}, from {listed} s on"


def _beside(label: str) -> str:
    """A set of further flows, in words."""
    kinds = ["of its kind" if one.server is None else literal(one.server) for one in _further(label)]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return ", ".join(
        kind if kind != "of its kind" and n == 1 else f"{n} {kind}" for kind, n in counts.items()
    )


def _further(label: str) -> list[FurtherFlow]:
    return flows.of(workload.parse(label, "the run"))


def _among_equals(label: str) -> bool:
    return all(one.server is None for one in _further(label))


def _equals(page: Page) -> str:
    """Each server beside its own kind, over all paths."""
    sets = [one for one in page.sets if _among_equals(one)]
    if not sets:
        return "No flow of this run is beside others of its kind alone."
    by_key = {(one.key.server, one.key.scenario, one.key.workload): one for one in page.cells}
    columns = [(scenario, one) for scenario in page.scenarios for one in sets]
    rows = [
        [literal(server), *(_index(by_key.get((server, *column))) for column in columns)]
        for server in page.servers
    ]
    head = ["server", *(f"{path(scenario)}, {len(_further(one)) + 1} flows" for scenario, one in columns)]
    return "Jain's index among equals:\n\n" + table(head, rows)


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
    known = [one for one in cell.records if one.jain_index is not None]
    each = zip(*(_goodputs(one) for one in known), strict=True)
    goodputs = " / ".join(mbit(statistics.median(values)) for values in each)
    return [_index(cell), goodputs, percent(_dropped(known))]


def _index(cell: Cell | None) -> str:
    """The median, and the worst."""
    if cell is None:
        return ""
    indices = _indices(cell)
    text = f"{statistics.median(indices):.2f} ({min(indices):.2f})"
    return f"**{text}**" if min(indices) >= _FAIR else text


def _indices(cell: Cell) -> list[float]:
    return [one.jain_index for one in cell.records if one.jain_index is not None]


def _goodputs(record: Record) -> list[float]:
    return [one.goodput_bps or 0.0 for one in record.flows]


def _dropped(records: Sequence[Record]) -> float:
    """Of the packets of all flows."""
    return statistics.median(_sum(one, "queue_drops") / (_sum(one, "packets") or 1) for one in records)


def _sum(record: Record, what: str) -> int:
    return sum(getattr(one, f"forward_{what}") for one in record.flows)
