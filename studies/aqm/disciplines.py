"""Which queue discipline a cell had, and over which path."""

from __future__ import annotations

from collections.abc import Iterable

from bentpipe.analysis.cells import Cell

TAIL = "drop-tail"


def discipline(cell: Cell) -> str:
    """The discipline, with what is set beside its defaults: `codel`, `codel, ecn=off`."""
    size_and_name = cell.key.scenario_label.queue.split(" ")
    words = [one for one in size_and_name[2:] if one]
    return ", ".join(words) or TAIL


def path_of(cell: Cell) -> str:
    """The scenario without its queue."""
    return str(cell.key.scenario_label.without_queue)


def in_order(found: Iterable[Cell]) -> list[str]:
    """The disciplines of cells, in the order in which they were run."""
    return list(dict.fromkeys(map(discipline, found)))
