"""The common shape of all that is measured: values over time, as whole numbers.

Rates are in bit/s, delays in nanoseconds, ratios in billionths, queues in packets, times in nanoseconds from
the first value on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from bentpipe.analysis.losses import Direction

Quantity = Literal["rate", "delay", "rtt", "loss", "queue"]


@dataclass(frozen=True)
class TimeSeries:
    """Values over time: each holds from its time on until the next, the last one until the end."""

    times_ns: tuple[int, ...]  # from 0, increasing
    values: tuple[int, ...]
    end_ns: int

    @classmethod
    def of(cls, times_ns: Sequence[int], values: Sequence[int], end_ns: int | None = None) -> TimeSeries:
        """Values from the first time on, which become 0. Without an end the last one lasts as long as the
        middle one of the others.
        """
        if end_ns is None:
            end_ns = times_ns[-1] + middle_gap(times_ns)
        begin = times_ns[0]
        return cls(tuple(time - begin for time in times_ns), tuple(values), end_ns - begin)

    @property
    def steps(self) -> Iterator[tuple[int, int]]:
        """Times and values, without those that equal the one before."""
        before: int | None = None
        for time, value in zip(self.times_ns, self.values, strict=True):
            if value != before:
                yield time, value
            before = value

    def changed(self, change: Callable[[int], int]) -> TimeSeries:
        """The same with changed values."""
        return TimeSeries(self.times_ns, tuple(map(change, self.values)), self.end_ns)

    def quantiles(self, shares: Sequence[float]) -> list[int]:
        """The values that are not exceeded in these shares of the time, which ascend."""
        ends = (*self.times_ns[1:], self.end_ns)
        lasting = zip(self.values, ends, self.times_ns, strict=True)
        held = sorted((value, end - begin) for value, end, begin in lasting)
        found: list[int] = []
        passed = 0
        for value, lasts in held:
            passed += lasts
            while len(found) < len(shares) and passed >= shares[len(found)] * self.end_ns:
                found.append(value)
        return found + [held[-1][0]] * (len(shares) - len(found))


def middle_gap(times_ns: Sequence[int]) -> int:
    """The median time from one to the next; 1 s if there is only one."""
    gaps = sorted(after - before for before, after in pairwise(times_ns))
    return gaps[len(gaps) // 2] if gaps else 10**9


@dataclass(frozen=True)
class Measured:
    """A quantity over time."""

    quantity: Quantity
    series: TimeSeries
    way: Direction | None = None  # None: the file does not say


@dataclass(frozen=True)
class Reading:
    """The content of a file."""

    file: str
    format: str  # in words, with an article
    measured: tuple[Measured, ...]
    notes: tuple[str, ...] = ()  # sentences: what is assumed, what is left out
    is_trace: bool = False  # scenarios can refer to the file itself, as to a trace of a rate
    used: frozenset[str] = frozenset()  # of the options that only some formats need: --every, --unit, --rtt
