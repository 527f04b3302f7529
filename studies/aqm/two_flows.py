"""Two flows behind each discipline: equal ones, and a sparse one beside a bulk one."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, number, table
from bentpipe.study.means import arithmetic
from bentpipe.study.quantiles import median

from .disciplines import TAIL, discipline, in_order

_SPARSE = "frames:"
_HOW = """Two flows of a kind, the second a second later: Jain's index over the time in which both are there
(1 where they have the same, 0.5 where one has all), the least of the trials in brackets:"""
_HOW_SPARSE = """A sparse flow, media frames of noq over datagrams, beside a bulk flow: the queueing of the
sparse flow's packets, in milliseconds, what half did not exceed / what 99 % did not:"""


def sections(shared: Sequence[Cell]) -> list[str]:
    """The tables of one path."""
    sparse, equal = both(shared)
    parts = folded("Two equal flows", _HOW, _grid(equal, "server", _index)) if equal else []
    if sparse:
        parts += folded("A sparse flow beside a bulk one", _HOW_SPARSE, _grid(sparse, "bulk flow", _waits))
    return parts


def both(shared: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Cells with a sparse flow, and those with two equal ones."""
    sparse = [one for one in shared if _SPARSE in one.key.workload]
    return sparse, [one for one in shared if _SPARSE not in one.key.workload]


@dataclass(frozen=True)
class IndexChange:
    """Jain's index of two equal flows over a path, means over servers: behind drop-tail, and behind the
    discipline with the largest mean of those whose interval is above drop-tail's.
    """

    tail: MeasuredValue
    discipline: str | None  # None if no interval is above
    raised: MeasuredValue | None


def index_change(shared: Sequence[Cell]) -> IndexChange | None:
    """What disciplines do to the index over a path; None without an index behind both."""
    equal = both(shared)[1]
    means = {name: mean for name in in_order(equal) if (mean := _mean_index(equal, name)) is not None}
    tail = means.pop(TAIL, None)
    if tail is None or not means:
        return None
    higher = {name: mean for name, mean in means.items() if _is_above(mean, tail)}
    best = max(higher, key=lambda name: higher[name].value, default=None)
    return IndexChange(tail, best, higher.get(best or ""))


def _mean_index(equal: Sequence[Cell], name: str) -> MeasuredValue | None:
    """The mean over servers of their trials' means, behind a discipline; None where a trial has none."""
    mine = [one for one in equal if discipline(one) == name]
    if any(len(_indices(one)) < len(one.records) for one in mine):
        return None
    return arithmetic([statistics.fmean(_indices(one)) for one in mine], 0.0, 1.0)


def _is_above(one: MeasuredValue, other: MeasuredValue) -> bool:
    return one.low is not None and other.high is not None and one.low > other.high


def _grid(some: Sequence[Cell], first: str, show: Callable[[Cell], str]) -> str:
    columns = in_order(some)
    by_key = {(one.key.server, discipline(one)): one for one in some}
    servers = dict.fromkeys(one.key.server for one in some)
    rows = [
        [
            literal(server),
            *("" if cell is None else marked(show(cell), cell) for cell in row),
        ]
        for server in servers
        for row in ([by_key.get((server, name)) for name in columns],)
    ]
    return table([first, *columns], rows)


def _index(cell: Cell) -> str:
    indices = _indices(cell)
    return f"{statistics.median(indices):.2f} ({min(indices):.2f})" if indices else "-"


def _indices(cell: Cell) -> list[float]:
    return [one.jain_index for one in cell.ok if one.jain_index is not None]


def _waits(cell: Cell) -> str:
    half = _of_second(cell, "forward_queueing_median_ms")
    most = _of_second(cell, "forward_queueing_p99_ms")
    return f"{number(half, 1)} / {number(most, 1)}"


def _of_second(cell: Cell, column: str) -> float | None:
    """The median over the trials of what the second flow had."""
    return median(getattr(one.flows[1], column) for one in cell.ok if len(one.flows) > 1)
