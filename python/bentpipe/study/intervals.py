"""Values written as text with their interval, or with the range of what they summarise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bentpipe.study.quantiles import median, quantile

_FAR = 1.02  # quantiles that differ by more are written


def with_ends(
    value: float,
    low: float | None,
    high: float | None,
    digits: int = 2,
    *,
    unit: str = "",
    factor: float = 1.0,
    always: bool = True,
) -> str:
    """`8.74 s (8.70 to 8.79)`. Only the value if there is no interval, or, unless `always`, if both its ends
    round to the same text.
    """
    text = f"{factor * value:.{digits}f}{unit}"
    if low is None or high is None:
        return text
    first, last = (f"{factor * one:.{digits}f}" for one in (low, high))
    return f"{text} ({first} to {last})" if always or first != last else text


def span(values: Iterable[float], digits: int = 2) -> str:
    """The range, `3 to 5`; `3` if both ends round to the same text, a dash for no values."""
    known = sorted(values)
    if not known:
        return "-"
    least, most = (f"{one:.{digits}f}" for one in (known[0], known[-1]))
    return least if least == most else f"{least} to {most}"


def with_quantiles(
    values: Sequence[float | None], ends: tuple[float, float], digits: int = 2, *, unit: str = ""
) -> str:
    """The median of the known values, with these two quantiles if they differ by more than 2 %; a dash for no
    values.
    """
    middle, low, high = median(values), *(quantile(values, one) for one in ends)
    if middle is None or low is None or high is None:
        return "-"
    if high <= _FAR * low:
        low = high = None
    return with_ends(middle, low, high, digits, unit=unit)
