"""Two flows of TCP and QUIC through one link: who gets what, by congestion control and queue, and whether
real time says the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe import workload
from bentpipe.analysis.cells import Cell
from bentpipe.plan import flows
from bentpipe.runs.records import Record
from bentpipe.study.markdown import literal, mbit, path, percent, table

_TEXT = """Two flows through one link, of TCP and QUIC, each with the others and with itself. The table shows
the share of the row's flow in what both receive while both are there: where it starts a second before the
column's / where it starts a second after it. 50 % is an even share; medians over the trials. The goodputs
themselves are in the tables below."""
_REAL = """The same in real time, with this machine's kernel, where it has been run: goodputs in Mbit/s of the
first flow and of the second, medians over the trials."""


@dataclass(frozen=True)
class TwoFlows:
    """All trials of two flows over one path, of which either may be of TCP."""

    cell: Cell
    first: str
    second: str

    @property
    def scenario(self) -> str:
        return self.cell.key.scenario

    @property
    def share(self) -> float:
        """Of the first."""
        return statistics.median(one / (one + other) for one, other in self._each if one + other)

    @property
    def goodputs(self) -> str:
        return " / ".join(mbit(statistics.median(values)) for values in zip(*self._each, strict=True))

    @property
    def measured(self) -> list[Record]:
        """The trials that count: an invalid one says nothing of the flows."""
        return [one for one in self.cell.ok if one.jain_index is not None]

    @property
    def _each(self) -> list[tuple[float, float]]:
        known = [one.flows for one in self.measured]
        return [(flow[0].goodput_bps or 0.0, flow[1].goodput_bps or 0.0) for flow in known]


def sections(cells: Sequence[Cell], real: Sequence[Cell]) -> list[str]:
    """The share of each flow, over each path."""
    mine = _two(cells)
    parts = ["## Who gets what", _TEXT]
    scenarios = dict.fromkeys(one.scenario for one in mine)
    parts += [_matrix([one for one in mine if one.scenario == each], each) for each in scenarios]
    return [*parts, *_against(mine, _two(real))]


def _two(cells: Sequence[Cell]) -> list[TwoFlows]:
    found = []
    for cell in cells:
        further = flows.of(workload.parse(cell.key.workload, "the run"))
        if len(further) == 1:
            found.append(TwoFlows(cell, cell.key.server, further[0].server or cell.key.server))
    return [one for one in found if one.measured]


def _matrix(mine: Sequence[TwoFlows], scenario: str) -> str:
    shares = {(one.first, one.second): one.share for one in mine}
    rows = list(dict.fromkeys(one.first for one in mine))
    columns = [one for one in rows if any((other, one) in shares for other in rows if other != one)]
    lines = []
    for row in rows:
        texts = []
        for column in columns:
            first, second = shares.get((row, column)), shares.get((column, row))
            after = None if second is None else 1 - second
            alone = row == column  # there is no other order among equals
            told = [first] if alone else [first, after]
            texts.append("-" if first is None and after is None else " / ".join(map(percent, told)))
        lines.append([literal(row), *texts])
    return table([path(scenario), *(literal(one) for one in columns)], lines)


def _against(virtual: Sequence[TwoFlows], real: Sequence[TwoFlows]) -> list[str]:
    known = {(one.scenario, one.first, one.second): one for one in virtual}
    rows = [
        [path(one.scenario), literal(one.first), literal(one.second), here.goodputs, one.goodputs,
         f"{percent(here.share)} / {percent(one.share)}", str(len(one.measured))]
        for one in real
        if (here := known.get((one.scenario, one.first, one.second))) is not None
    ]  # fmt: skip
    if not rows:
        return []
    head = ["path", "first", "second", "virtual", "real", "first's share, virtual / real", "trials, real"]
    return ["## In real time", _REAL, table(head, rows, left=3)]
