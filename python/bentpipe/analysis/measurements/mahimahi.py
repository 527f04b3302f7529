"""Traces of mahimahi's `mm-link`: a line is a millisecond at which 1500 bytes may leave.

A scenario refers to the file itself, which the link model reads as mahimahi does; here its rates are counted
to tell what is in it. What may leave at 0 leaves at the end of each period.
"""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe.analysis.measurements import numbers
from bentpipe.analysis.measurements.time_series import Measured, Reading, TimeSeries
from bentpipe.errors import UsageError

NAME = "a trace of mahimahi"
LONGEST_MS = 86_400_000
_OPPORTUNITY_BPS = 12_000_000  # 1500 bytes in a millisecond
_WINDOW_MS = 100  # of the rates that are printed
_HINT = "a line is a whole number of milliseconds, and none is below the one before"


def recognises(lines: Sequence[str]) -> bool:
    """Whether these are whole numbers that do not go back."""
    before = 0
    for line in lines:
        text = line.strip()
        if not (text.isascii() and text.isdecimal() and len(text) <= 12) or int(text) < before:
            return False
        before = int(text)
    return before > 0


def read(file: str, lines: Sequence[str]) -> Reading:
    """The rate over time, of windows of 100 ms. UsageError if a line is none of such a trace."""
    before = 0
    counts: dict[int, int] = {}
    for line, text in enumerate(lines, start=1):
        if not (text.strip().isascii() and text.strip().isdecimal()) or len(text.strip()) > 12:
            raise numbers.bad(file, f"line {line}", text, "is no whole number", _HINT)
        at = int(text)
        if at < before:
            raise numbers.bad(file, f"line {line}", text, f"is before {before}, of the line above", _HINT)
        if at > LONGEST_MS:
            raise numbers.bad(file, f"line {line}", text, "is more than a day", _HINT)
        before = at
        counts[at] = counts.get(at, 0) + 1
    if before == 0:
        raise UsageError(f"{file}: the last time is not above 0: the trace begins again there", _HINT)
    counts[before] += counts.pop(0, 0)
    windows = -(-before // _WINDOW_MS)
    sums = [0] * windows
    for at, count in counts.items():
        sums[(at - 1) // _WINDOW_MS] += count
    lasts = [min(_WINDOW_MS, before - index * _WINDOW_MS) for index in range(windows)]
    rates = [count * _OPPORTUNITY_BPS // last for count, last in zip(sums, lasts, strict=True)]
    times = [index * _WINDOW_MS * 10**6 for index in range(windows)]
    series = TimeSeries.of(times, rates, before * 10**6)
    stays = f"The scenario refers to {file}, which must stay where it is."
    note = f"{stays} The figures are of {_WINDOW_MS} ms each."
    return Reading(file, NAME, (Measured("rate", series),), (note,), is_trace=True)
