"""One flow behind each discipline: its completion, and the queueing of its packets."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.markdown import listed, literal, number, percent, several, table
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


@dataclass(frozen=True)
class _Comparison:
    """Drop-tail beside the disciplines of one path: medians over those stacks whose trials all succeeded."""

    path: str
    servers: int
    tail_wait: float
    shortest: str
    shortest_wait: float
    slowest: str
    slowdown: float

    @property
    def waits(self) -> str:
        """How long 99 % of the packets wait at most, behind the discipline with the shortest wait."""
        behind = f"({self.shortest}; drop-tail {self.tail_wait:.0f})"
        return f"{self.shortest_wait:.0f} ms over {literal(self.path)} {behind}"

    @property
    def times(self) -> str:
        """What the slowest discipline adds to the completion of drop-tail."""
        if self.slowdown <= _NOTABLE:
            return f"no time over {literal(self.path)}"
        return f"up to {percent(self.slowdown)} over {literal(self.path)} ({self.slowest})"


def sentence(by_path: Mapping[str, Sequence[Cell]]) -> str:
    """How disciplines compare with drop-tail over each path."""
    found = [one for path, mine in by_path.items() if (one := _compare(path, mine))]
    if not found:
        return ""
    servers = sorted({one.servers for one in found})
    many = several(servers[0], "server") if len(servers) == 1 else f"{servers[0]} to {servers[-1]} servers"
    return (
        f"The best discipline lets 99 % of the packets wait at most {listed(one.waits for one in found)}, "
        f"and the slowest adds to the completion of 10 MiB {listed(one.times for one in found)} "
        f"(medians over {many})."
    )


def _compare(path: str, mine: Sequence[Cell]) -> _Comparison | None:
    columns = in_order(mine)
    whole = [
        by_column
        for by_column in _by_server(mine).values()
        if len(by_column) == len(columns) and all(map(_is_whole, by_column.values()))
    ]
    others = [name for name in columns if name != TAIL]
    if TAIL not in columns or not whole or not others:
        return None
    waits = {name: _over(whole, name, "forward_queueing_p99_ms") for name in columns}
    times = {name: _over(whole, name, "completion_s") for name in columns}
    slowest = max(others, key=lambda name: times[name])
    shortest = min(others, key=lambda name: waits[name])
    return _Comparison(
        path=path,
        servers=len(whole),
        tail_wait=waits[TAIL],
        shortest=shortest,
        shortest_wait=waits[shortest],
        slowest=slowest,
        slowdown=times[slowest] / times[TAIL] - 1,
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
