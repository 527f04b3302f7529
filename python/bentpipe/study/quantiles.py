"""Medians and quantiles of values, some of which are not known. Infinite: not by the end of the trial."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from bentpipe.analysis.cells import Cell


def quantile(values: Iterable[float | None], share: float) -> float | None:
    """The least of the known values that so great a share of them does not exceed; None if there are none."""
    ordered = sorted(value for value in values if value is not None)
    if not ordered:
        return None
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def median(values: Iterable[float | None]) -> float | None:
    """The middle one of the known values, or the mean of the two in the middle; None if there are none."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def median_of(cell: Cell | None, column: str) -> float | None:
    """The median of a column over the trials of a cell that succeeded."""
    return None if cell is None else median(cell.values(column))


def share_of(values: Sequence[float], least: float) -> float | None:
    """The share of values above `least`; None if there are none."""
    return sum(value > least for value in values) / len(values) if values else None
