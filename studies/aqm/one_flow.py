"""One flow behind each discipline: its completion, and the queueing of its packets."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from bentpipe.analysis.cells import Cell
from bentpipe.study.markdown import literal, number, percent, table
from bentpipe.study.quantiles import median_of

from .disciplines import TAIL, discipline, in_order

# A change of the median completion that is worth a word.
_NOTABLE = 0.02


def sections(mine: Sequence[Cell]) -> list[str]:
    """The tables of one path."""
    return [
        "Completion of 10 MiB, in seconds; in brackets how many of the trials failed:",
        _grid(mine, _completion),
        "Queueing, in milliseconds: what half of the packets did not exceed / what 99 % did not:",
        _grid(mine, _queueing),
    ]


def sentence(path: str, mine: Sequence[Cell]) -> str:
    """How disciplines compare with drop-tail on one path: medians over those stacks that all trials have."""
    columns = in_order(mine)
    whole = [
        by_column
        for by_column in _by_server(mine).values()
        if len(by_column) == len(columns) and all(map(_is_whole, by_column.values()))
    ]
    if TAIL not in columns or not whole:
        return ""
    waits = {name: _over(whole, name, "forward_queueing_p99_ms") for name in columns}
    times = {name: _over(whole, name, "completion_s") for name in columns}
    slowest = max((name for name in columns if name != TAIL), key=lambda name: times[name])
    shortest = min(waits, key=lambda name: waits[name])
    cost = times[slowest] / times[TAIL] - 1
    change = f"up to {percent(cost)} more time ({slowest})" if cost > _NOTABLE else "no more time"
    return (
        f"Over {literal(path)}, 99 % of the packets wait at most {waits[TAIL]:.0f} ms behind drop-tail and "
        f"{waits[shortest]:.0f} ms behind {shortest}, and 10 MiB take {change} "
        f"(medians over {len(whole)} servers)."
    )


def _is_whole(cell: Cell) -> bool:
    """Whether no trial failed, and all have both figures."""
    return not cell.failures and median_of(cell, "forward_queueing_p99_ms") is not None


def _over(whole: Sequence[dict[str, Cell]], name: str, column: str) -> float:
    values = [median_of(one[name], column) for one in whole]
    return statistics.median(value for value in values if value is not None)


def _by_server(mine: Sequence[Cell]) -> dict[str, dict[str, Cell]]:
    found: dict[str, dict[str, Cell]] = {}
    for one in mine:
        found.setdefault(one.key.server, {})[discipline(one)] = one
    return found


def _grid(mine: Sequence[Cell], show: Callable[[Cell], str]) -> str:
    columns = in_order(mine)
    rows = [
        [literal(server), *(show(found[name]) if name in found else "" for name in columns)]
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
