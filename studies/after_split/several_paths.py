"""Files over two paths at once, beside the first of them alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.intervals import with_quantiles
from bentpipe.study.markdown import literal, percent, table
from bentpipe.study.quantiles import median, median_of

from . import effects, tables

_HOW = """Seconds over the first path alone and over both at once: medians, with quartiles where they differ
by more than 2 %. *Of the sum* is the goodput over both as a share of the sum of their rates, and *second
path* the share of the bytes to the client that took it."""
_OFF = ("multipath=off",)


def sections(cells: Iterable[Cell]) -> list[str]:
    """The section, if trials had several paths."""
    both, alone = _both(cells)
    rows = [_row(key, cell, alone.get(key)) for key, cell in both.items()]
    if not rows:
        return []
    head = ["paths", "what", "stack", "first alone", "both", "of the sum", "second path"]
    return ["## Two paths at once", _HOW, table(head, rows, left=3)]


def _both(cells: Iterable[Cell]) -> tuple[Mapping[tuple[str, str, str], Cell], ...]:
    """The cells that used all paths, and those that used the first, by scenario, workload and stack."""
    both: dict[tuple[str, str, str], Cell] = {}
    alone: dict[tuple[str, str, str], Cell] = {}
    for one in cells:
        if not any(record.paths for record in one.records):
            continue
        server = labels.variant(one.key.server)
        key = (one.key.scenario_label.name, one.key.workload, server.stack)
        is_one = set(_OFF) & set(server.settings) or (server.stack == "linux" and not server.settings)
        (alone if is_one else both)[key] = one
    return both, alone


def _row(key: tuple[str, str, str], cell: Cell, alone: Cell | None) -> list[str]:
    scenario, workload, stack = key
    share = median(one.paths[1].forward_share for one in cell.ok if len(one.paths) > 1)
    return [
        literal(scenario),
        effects.named(workload),
        stack,
        _seconds(alone),
        _seconds(cell),
        marked(percent(median_of(cell, "efficiency")), cell),
        marked(percent(share), cell),
    ]


def _seconds(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    text = with_quantiles(cell.values("completion_s"), tables.ENDS) if cell.ok else ""
    return marked(text or literal(next(iter(cell.failures))), cell)
