"""Two flows behind each discipline: equal ones, and a sparse one beside a bulk one."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.markdown import literal, number, table
from bentpipe.study.quantiles import median

from .disciplines import TAIL, discipline, in_order, path_of

_SPARSE = "frames:"
_HOW = """Two flows of a kind, the second a second later: Jain's index over the time in which both are there
(1 where they have the same, 0.5 where one has all), the least of the trials in brackets:"""
_HOW_SPARSE = """A sparse flow, media frames of noq over datagrams, beside a bulk flow: the queueing of the
sparse flow's packets, in milliseconds, what half did not exceed / what 99 % did not:"""


def sections(shared: Sequence[Cell]) -> list[str]:
    """The tables of one path."""
    sparse, equal = _both(shared)
    parts = [_HOW, _grid(equal, "server", _index)] if equal else []
    return parts + ([_HOW_SPARSE, _grid(sparse, "bulk flow", _waits)] if sparse else [])


def sentence(shared: Sequence[Cell]) -> str:
    """What disciplines do for a sparse flow and for two equal ones, over all paths and bulk flows."""
    sparse, equal = _both(shared)
    waits = _by_discipline(sparse, _waiting)
    indices = _by_discipline(equal, _least_index)
    if TAIL not in waits or len(waits) < 2:
        return ""
    best = min(waits, key=lambda name: waits[name])
    said = (
        f"Beside a bulk flow, 99 % of a sparse flow's packets wait at most {waits[TAIL]:.0f} ms behind "
        f"drop-tail and {waits[best]:.1f} ms behind {best} (medians over {len(set(map(path_of, sparse)))} "
        "paths and all bulk flows)"
    )
    if TAIL not in indices or len(indices) < 2:
        return f"{said}."
    fairest = max(indices, key=lambda name: indices[name])
    return (
        f"{said}, and Jain's index of two equal flows falls to {indices[TAIL]:.2f} behind drop-tail, and "
        f"behind {fairest} to {indices[fairest]:.2f} (least of all pairs)."
    )


def _both(shared: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Cells with a sparse flow, and those with two equal ones."""
    sparse = [one for one in shared if _SPARSE in one.key.workload]
    return sparse, [one for one in shared if _SPARSE not in one.key.workload]


def _by_discipline(
    some: Sequence[Cell], figure: Callable[[Sequence[Cell]], float | None]
) -> dict[str, float]:
    found = {name: figure([one for one in some if discipline(one) == name]) for name in in_order(some)}
    return {name: value for name, value in found.items() if value is not None}


def _least_index(some: Sequence[Cell]) -> float | None:
    return min((index for one in some for index in _indices(one)), default=None)


def _waiting(some: Sequence[Cell]) -> float | None:
    return median(_of_second(one, "forward_queueing_p99_ms") for one in some)


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
