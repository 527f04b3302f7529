"""Which queue discipline a cell had, and over which path."""

from __future__ import annotations

from collections.abc import Iterable

from bentpipe.analysis.cells import Cell

TAIL = "drop-tail"


def discipline(cell: Cell) -> str:
    """The discipline, with what is set beside its defaults: `codel`, `codel, ecn=off`."""
    keys = dict(cell.key.scenario_label.queue_keys)
    keys.pop("size", None)
    name = keys.pop("aqm", TAIL)
    return ", ".join([name, *(f"{key}={keys[key]}" for key in keys)])


def path_of(cell: Cell) -> str:
    """The scenario without its queue."""
    return str(cell.key.scenario_label.without_queue)


def in_order(found: Iterable[Cell]) -> list[str]:
    """The disciplines of cells, in the order in which they were run."""
    return list(dict.fromkeys(map(discipline, found)))
