"""Cells of the page, and how their figures are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.plan.treatments import DIRECT
from bentpipe.study.markdown import literal, number, percent, table
from bentpipe.study.quantiles import median, median_of

SWITCHED = "satellites-switched"
HANDSHAKES = "satellites-handshakes"
ATTENUATION = "satellites-attenuation"
ONE_THING = (SWITCHED, HANDSHAKES, ATTENUATION)

_FAR = 1.02  # ends that differ by less are not written


def with_range(values: Sequence[float], digits: int = 2) -> str:
    """The median, and in parentheses the least and the most where they differ by more than 2 %."""
    middle = median(values)
    if middle is None:
        return "-"
    low, high = min(values), max(values)
    ends = f" ({low:.{digits}f} to {high:.{digits}f})" if high > _FAR * low else ""
    return number(middle, digits) + ends


def completion(cell: Cell | None) -> str:
    """Seconds to the end of the file, with the range over the trials, and how many of them failed."""
    if cell is None:
        return "-"
    failed = sum(cell.failures.values())
    also = f"; {failed} of {len(cell.records)} failed" if failed else ""
    return marked(with_range(cell.values("completion_s")) + also, cell)


def share(cell: Cell | None) -> str:
    """The share of the ideal sender."""
    return marked(percent(median_of(cell, "share_of_limit")), cell)


def of_stacks(cells: Iterable[Cell]) -> str:
    """A table of one scenario: each server with and without proxies."""
    rows: dict[str, dict[bool, Cell]] = {}
    for one in cells:
        rows.setdefault(one.key.server, {})[one.key.treatment == DIRECT] = one
    head = ["server", "direct, s", "share of the ideal", "with proxies, s", "share of the ideal"]
    return table(
        head,
        [
            [
                literal(server),
                completion(mine.get(True)),
                share(mine.get(True)),
                completion(mine.get(False)),
                share(mine.get(False)),
            ]
            for server, mine in rows.items()
        ],
    )
