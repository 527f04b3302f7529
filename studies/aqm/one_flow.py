"""One flow behind each discipline: its completion, and the queueing of its packets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.front import folded
from bentpipe.study.markdown import listed, literal, number, table
from bentpipe.study.quantiles import median_of
from bentpipe.workload.units import shown_size

from .disciplines import discipline, in_order

_HOW = "Completion in seconds; in brackets how many of the trials failed:"
_HOW_QUEUEING = "In milliseconds, the delay that half of the packets did not exceed / that 99 % did not:"


def sections(mine: Sequence[Cell]) -> list[str]:
    """The tables of one path."""
    return [
        *folded(f"Download of {sizes(mine)}", _HOW, _grid(mine, _completion)),
        *folded("Queueing of its packets", _HOW_QUEUEING, _grid(mine, _queueing)),
    ]


def sizes(mine: Sequence[Cell]) -> str:
    """What is downloaded: `10 MiB`."""
    return listed(shown_size(one) for one in sorted({cell.records[0].size_bytes for cell in mine}))


def _by_server(mine: Sequence[Cell]) -> dict[str, dict[str, Cell]]:
    found: dict[str, dict[str, Cell]] = {}
    for one in mine:
        found.setdefault(one.key.server, {})[discipline(one)] = one
    return found


def _grid(mine: Sequence[Cell], show: Callable[[Cell], str]) -> str:
    columns = in_order(mine)
    rows = [
        [
            literal(server),
            *(marked(show(found[name]), found[name]) if name in found else "" for name in columns),
        ]
        for server, found in _by_server(mine).items()
    ]
    return table(["server", *columns], rows)


def _completion(cell: Cell) -> str:
    failed = sum(cell.failures.values())
    also = f" ({failed})" if failed else ""
    return number(median_of(cell, "completion_s")) + also


def _queueing(cell: Cell) -> str:
    half = median_of(cell, "forward_queueing_median_ms")
    most = median_of(cell, "forward_queueing_p99_ms")
    return f"{number(half, 1)} / {number(most, 1)}"
