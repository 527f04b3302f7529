"""Verdicts on the claims of a publication, by the interval of what trials measured."""

from __future__ import annotations

REPEATED, CONTRADICTED, OPEN = "repeated", "contradicted", "open"


def verdict(low: float | None, high: float | None, border: float, *, above: bool, same: float = 1.0) -> str:
    """The verdict on the claim that a value lies above a border, or below it. It is open where the interval
    holds the border, or comes within `same` times of it, or there is none.
    """
    if low is None or high is None or (low <= border * same and high >= border / same):
        return OPEN
    return REPEATED if (low > border) == above else CONTRADICTED
