"""Quantiles of values some of which may lie beyond the end of a measurement: those are infinite."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def quantile(values: Iterable[float], share: float) -> float | None:
    """The least value that the given share of values does not exceed; None if there are none."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def median(values: Iterable[float]) -> float | None:
    """The middle value, or the mean of the two in the middle; None if there are none."""
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def share_of(values: Sequence[float], least: float) -> float | None:
    """The share of values above `least`; None if there are none."""
    return sum(value > least for value in values) / len(values) if values else None
