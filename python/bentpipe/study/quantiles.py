"""Medians and quantiles of values, some of them unknown, some infinite: not reached by the end of a trial."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from bentpipe.analysis.cells import Cell


def quantile(values: Iterable[float | None], share: float) -> float | None:
    """The smallest known value that at least this share of them does not exceed; None without values."""
    ordered = sorted(value for value in values if value is not None)
    if not ordered:
        return None
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def median(values: Iterable[float | None]) -> float | None:
    """The median of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def median_of(cell: Cell | None, column: str) -> float | None:
    """The median of a column over the trials of a cell that succeeded; None without one."""
    return None if cell is None else median(cell.values(column))


def share_of(values: Sequence[float], least: float) -> float | None:
    """The share of values above `least`; None if there are none."""
    return sum(value > least for value in values) / len(values) if values else None
