"""Numbers of a page as a CSV beside it: a row for each setting."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bentpipe.analysis import trial_marks
from bentpipe.analysis.cells import Cell
from bentpipe.runs.records import Record
from bentpipe.study.front import folded
from bentpipe.study.markdown import several, table
from bentpipe.study.means import arithmetic
from bentpipe.study.quantiles import median

LONGEST = 40  # rows of a table on a page; more of them go to a sheet
Measure = Callable[[Record], float | None]
_KEYS = ("testbed", "scenario", "workload", "client", "server", "treatment")


def folded_table(
    summary: str, head: Sequence[str], rows: Sequence[Sequence[str]], path: Path, left: int = 1
) -> tuple[list[str], list[Path]]:
    """A table as parts of a page, folded, and the files beside the page: none, or, of more rows than a page
    shows, a sheet of them at `path` in its place.
    """
    if len(rows) <= LONGEST:
        return folded(summary, table(head, rows, left)), []
    _write(path, head, rows)
    return [
        f"[{path.name}]({path.name}) has {several(len(rows), 'row')}: {summary[:1].lower()}{summary[1:]}."
    ], [path]


def of_cells(
    cells: Iterable[Cell],
    measures: Mapping[str, Measure],
    path: Path,
    records: Callable[[Cell], Sequence[Record]] | None = None,
) -> str:
    """Write a row for each cell to `path`: its key, how many trials it has and how many succeeded, and of
    each measure the mean over those that did, the interval of the mean (95 %, Student's t) and the median;
    empty where there is none. With `records` these are of the trials that it chooses, whose number is in a
    column of its own. The line of the page that leads there.
    """
    ends = ("mean", "low", "high", "median")
    counts = ["trials", "ok", *(["measured"] if records else [])]
    head = [*_KEYS, *counts, *(f"{name}_{end}" for name in measures for end in ends)]
    rows = [_row(one, measures, records) for one in cells]
    _write(path, head, rows)
    return (
        f"[{path.name}]({path.name}) has {several(len(rows), 'row')}, one for each setting: mean, interval "
        "of 95 % and median."
    )


def _write(path: Path, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows([trial_marks.without(text) for text in row] for row in rows)


def _row(
    cell: Cell, measures: Mapping[str, Measure], records: Callable[[Cell], Sequence[Record]] | None
) -> list[str]:
    used = records(cell) if records else cell.ok
    counts = [len(cell.records), len(cell.ok), *([len(used)] if records else [])]
    row = [*(str(getattr(cell.key, key)) for key in _KEYS), *map(str, counts)]
    for measure in measures.values():
        known = [value for one in used if (value := measure(one)) is not None]
        mean = arithmetic(known)
        values = (None,) * 3 if mean is None else (mean.value, mean.low, mean.high)
        row += [_written(one) for one in (*values, median(known))]
    return row


def _written(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:.6g}"
