"""Two flows behind each discipline: equal ones, and a sparse one beside a bulk one."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from bentpipe.analysis.cells import Cell
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
    sparse = [one for one in shared if _SPARSE in one.key.workload]
    equal = [one for one in shared if _SPARSE not in one.key.workload]
    parts = [_HOW, _grid(equal, "server", _index)] if equal else []
    return parts + ([_HOW_SPARSE, _grid(sparse, "bulk flow", _waits)] if sparse else [])


def sentence(shared: Sequence[Cell]) -> str:
    """What flow queueing does for the sparse flow, over all paths and bulk flows."""
    sparse = [one for one in shared if _SPARSE in one.key.workload]
    columns = in_order(sparse)
    if TAIL not in columns or len(columns) < 2:
        return ""
    waits = {name: _waiting([one for one in sparse if discipline(one) == name]) for name in columns}
    known = {name: value for name, value in waits.items() if value is not None}
    if TAIL not in known:
        return ""
    best = min(known, key=lambda name: known[name])
    return (
        f"Beside a bulk flow, 99 % of a sparse flow's packets wait at most {known[TAIL]:.0f} ms behind "
        f"drop-tail and {known[best]:.1f} ms behind {best} (medians over {len(set(map(path_of, sparse)))} "
        "paths and all bulk flows)."
    )


def _waiting(some: Sequence[Cell]) -> float | None:
    return median(_of_second(one, "forward_queueing_p99_ms") for one in some)


def _grid(some: Sequence[Cell], first: str, show: Callable[[Cell], str]) -> str:
    columns = in_order(some)
    by_key = {(one.key.server, discipline(one)): one for one in some}
    servers = dict.fromkeys(one.key.server for one in some)
    rows = [
        [
            literal(server),
            *(show(by_key[server, name]) if (server, name) in by_key else "" for name in columns),
        ]
        for server in servers
    ]
    return table([first, *columns], rows)


def _index(cell: Cell) -> str:
    indices = [one.jain_index for one in cell.ok if one.jain_index is not None]
    return f"{statistics.median(indices):.2f} ({min(indices):.2f})" if indices else "-"


def _waits(cell: Cell) -> str:
    half = _of_second(cell, "forward_queueing_median_ms")
    most = _of_second(cell, "forward_queueing_p99_ms")
    return f"{number(half, 1)} / {number(most, 1)}"


def _of_second(cell: Cell, column: str) -> float | None:
    """The median over the trials of what the second flow had."""
    return median(getattr(one.flows[1], column) for one in cell.ok if len(one.flows) > 1)
