"""The tables of the page: a row for each path and workload, a column for each treatment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.intervals import with_quantiles
from bentpipe.study.markdown import literal, percent, table
from bentpipe.study.quantiles import median

from . import effects
from .effects import PATHS, SLOWER, Effect, Setting

_MARKS = {effects.FASTER: "▼", SLOWER: "▲"}
ENDS = (0.25, 0.75)


def times(grouped: Mapping[Setting, Mapping[str, Cell]], found: Mapping[tuple[Setting, str], Effect]) -> str:
    """Seconds by setting and treatment, marked where a treatment is faster or slower than none."""
    columns = effects.treatments_of(grouped.values())

    def shown(where: Setting, name: str) -> str:
        cell = grouped[where].get(name)
        if cell is None:
            return ""
        if not cell.ok:
            return marked(literal(next(iter(cell.failures))), cell)
        failed = f" ({len(cell.ok)} of {len(cell.records)})" if cell.failures else ""
        effect = found.get((where, name))
        mark = _MARKS.get(effect.verdict, "") if effect else ""
        text = f"{with_quantiles(cell.values('completion_s'), ENDS)}{failed} {mark}".strip()
        return marked(text, cell)

    rows = [[*where_of(one), *(shown(one, name) for name in columns)] for one in effects.in_order(grouped)]
    return table(["path", "loss", "what", "sender", *columns], rows, left=4)


def folded(summary: str, *parts: str) -> list[str]:
    """Parts of a page that a reader opens."""
    return [f"<details><summary>{summary}</summary>", *parts, "</details>"]


def figures(
    grouped: Mapping[Setting, Mapping[str, Cell]], show: Callable[[Cell], str], columns: Iterable[str] = ()
) -> str:
    """A figure of each cell, by setting and treatment."""
    names = list(columns) or effects.treatments_of(grouped.values())
    rows = [
        [*where_of(one), *("" if cell is None else marked(show(cell), cell) for cell in row)]
        for one in effects.in_order(grouped)
        for row in ([grouped[one].get(name) for name in names],)
    ]
    return table(["path", "loss", "what", "sender", *names], rows, left=4)


def in_time(cell: Cell) -> str:
    """The share of frames in time."""
    return percent(median(cell.values("in_time_share"))) if cell.ok else literal(next(iter(cell.failures)))


def where_of(one: Setting) -> list[str]:
    """A setting in the first columns of a table."""
    sender = ":".join(labels.variant(one.sender).settings) or one.sender
    return [PATHS.get(one.path, literal(one.path)), one.loss, effects.named(one.workload), literal(sender)]
