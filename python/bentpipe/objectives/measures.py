"""The measures of objectives, and their bounds as people write them."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe.analysis.cells import AGES
from bentpipe.analysis.comparison import MEASURES
from bentpipe.errors import UsageError, one_of
from bentpipe.runs.records import Record
from bentpipe.workload.units import shown_size

# Of `first_mb_s`, whose values stand in this order: millions of bytes.
MARKS_MB = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
# The outcomes of a trial that timed out: what it had not reached by then, it never did.
TIMEOUTS = ("handshake_timeout", "transfer_timeout")

_UNITS = {
    "_s": {"s": 1.0, "ms": 1e-3, "min": 60.0},
    "_ms": {"ms": 1.0, "s": 1e3},
    "_bps": {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    "_bytes": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9},
}
SHARES = {"%": 0.01, "": 1.0}
_COUNTS = {"": 1.0}
_BOUND = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z/%]*)\s*")
_LARGER_IS_BETTER = frozenset({"goodput_bps", "media_rate_bps"})


def worse_median(values: Sequence[float], *, more_is_worse: bool) -> float:
    """The median; of an even number of values the worse of the two in the middle, as that of a cell is."""
    return statistics.median_high(values) if more_is_worse else statistics.median_low(values)


@dataclass(frozen=True)
class ObjectiveMeasure:
    """A measure of a trial: a column of its record, or the time until its first bytes have arrived."""

    column: str
    mark: int | None = None  # which value of `first_mb_s`

    @property
    def bytes(self) -> int | None:
        """The number of first bytes; None for a column."""
        return None if self.mark is None else MARKS_MB[self.mark] * 10**6

    @property
    def title(self) -> str:
        """The measure in words, before a bound: `first 2 MB`, `page load time`."""
        if self.bytes is not None:
            return f"first {shown_size(self.bytes)}"
        return MEASURES[self.column].title.rpartition(" in ")[0] or MEASURES[self.column].title

    @property
    def more_is_better(self) -> bool:
        """Whether a greater value is better."""
        return self.column in _LARGER_IS_BETTER or self.column.endswith(("share", "efficiency", "_of_limit"))

    @property
    def never(self) -> float:
        """The value of a trial that did not receive that many bytes."""
        return 0.0 if self.more_is_better else math.inf

    def of(self, record: Record) -> float | None:
        """Its value in a trial that succeeded or timed out; None where it was not measured."""
        if self.mark is not None:
            known = record.first_mb_s[self.mark] if self.mark < len(record.first_mb_s) else None
        else:
            known = getattr(record, self.column)
        # Data that were not decoded may have arrived; after a handshake that never ended nothing did.
        unseen = self.mark is not None and record.measured_from == "client"
        if known is None and record.outcome in TIMEOUTS and not (unseen and record.outcome == TIMEOUTS[1]):
            return self.never
        if known is None and self.column in AGES and record.frames:
            return self.never  # as many frames as count were lost
        value: float | None = known
        return value

    @property
    def units(self) -> dict[str, float]:
        """The units that a bound may have, and their factors; the first is what values are shown in."""
        if self.column.endswith("share") or self.column in ("efficiency", "share_of_limit"):
            return SHARES
        ending = next((one for one in ("_ms", "_bps", "_bytes", "_s") if self.column.endswith(one)), "")
        return _UNITS.get(ending, _COUNTS)

    def text(self, value: float | None) -> str:
        """A value with its unit: `2.25 s`."""
        if value is None or value == self.never:
            return "never"
        if self.units is SHARES:
            return f"{100 * value:.4g} %"
        if self.column.endswith("_bps"):
            return f"{value / 1e6:.2f} Mbit/s"
        unit = next(iter(self.units))
        return f"{value:.4g} {unit}".rstrip()


def measure(name: str, where: str) -> ObjectiveMeasure:
    """The measure that a suite names, a column. UsageError that names `where` for an unknown one."""
    if name not in MEASURES:
        raise UsageError(f'{where}: "{name}" is not valid', one_of(name, MEASURES, "measures"))
    return ObjectiveMeasure(name)


def first_bytes(size: int, where: str) -> ObjectiveMeasure:
    """The time until the first bytes of a file have arrived. UsageError that names `where` for a size without
    a mark in the records.
    """
    if size % 10**6 or size // 10**6 not in MARKS_MB:
        marks = ", ".join(shown_size(one * 10**6) for one in MARKS_MB)
        raise UsageError(f"{where}: records have no time of {shown_size(size)}", f"of {marks} they have one")
    return ObjectiveMeasure("first_mb_s", MARKS_MB.index(size // 10**6))


def bound(text: str, units: dict[str, float], where: str) -> float:
    """A bound above 0, in the column's unit: from `3 s`, `300 ms`, `95 %`. UsageError that names `where`."""
    match = _BOUND.fullmatch(text)
    factor = units.get(match[2]) if match else None
    value = float(match[1]) * factor if match and factor is not None else 0.0
    if value <= 0:
        unit = " or ".join(one for one in units if one)
        wanted = f"a number above 0 in {unit}, in quotes" if unit else "a number above 0, in quotes"
        raise UsageError(f'{where}: "{text}" is not valid', f"write {wanted}")
    return value
