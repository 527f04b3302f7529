"""Intervals from few trials: of a share of them, and of how much sooner one kind is than another.

A share has Wilson's interval (E. B. Wilson, J. Am. Stat. Assoc. 22, 1927); two shares are compared by
Fisher's exact test (R. A. Fisher, J. R. Stat. Soc. 85, 1922). A shift is the middle of all differences
between a trial of one kind and one of the other, and its interval that of Mann and Whitney's test turned
round (J. L. Hodges, E. L. Lehmann, Ann. Math. Stat. 34, 1963): it assumes that the two are distributed
equally but for the shift, nothing else, and takes trials that never came so far as later than all others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe.study.intervals import with_ends
from bentpipe.study.quantiles import median

_CONFIDENCE = 0.95
_Z = 1.959964  # of a normal distribution, for that confidence


@dataclass(frozen=True)
class ShareInterval:
    """A share of trials, with the interval that its true value is in."""

    count: int
    trials: int

    @property
    def value(self) -> float:
        return self.count / self.trials

    @property
    def ends(self) -> tuple[float, float]:
        squared = _Z**2 / self.trials
        middle = (self.value + squared / 2) / (1 + squared)
        reach = _Z * math.sqrt(self.value * (1 - self.value) / self.trials + squared / (4 * self.trials))
        low, high = middle - reach / (1 + squared), middle + reach / (1 + squared)
        return max(low, 0.0), min(high, 1.0)

    def written(self) -> str:
        """`83 % (65 to 92)`; a dash without trials."""
        if not self.trials:
            return "-"
        return with_ends(self.value, *self.ends, 0, unit=" %", factor=100)


def share_above(values: Sequence[float], border: float) -> ShareInterval:
    """The share of values above the border."""
    return ShareInterval(sum(one > border for one in values), len(values))


def chance_of(one: ShareInterval, other: ShareInterval) -> float:
    """The probability of counts that differ as much or more, if both shares are the same."""
    trials, count = one.trials + other.trials, one.count + other.count
    ways = [math.comb(one.trials, k) * math.comb(other.trials, count - k) for k in range(count + 1)]
    return sum(way for way in ways if way <= ways[one.count]) / math.comb(trials, count)


@dataclass(frozen=True)
class ShiftInterval:
    """The shift between two samples with its interval; the ends are infinite if trials are too few."""

    value: float
    low: float
    high: float


def shift(then: Sequence[float], now: Sequence[float]) -> ShiftInterval | None:
    """The shift by which `now` is less than `then`; None if one has no values."""
    if not then or not now:
        return None
    gaps = sorted(0.0 if one == other else one - other for one in then for other in now)
    outer = _outer(len(then), len(now))
    middle = median(gaps) or 0.0
    if not outer:
        return ShiftInterval(middle, -math.inf, math.inf)
    return ShiftInterval(middle, gaps[outer - 1], gaps[len(gaps) - outer])


@functools.lru_cache
def _outer(first: int, second: int) -> int:
    """Which of the ordered differences the interval begins with, counted from 1; 0: there are too few."""
    counts = _arrangements(first, second)
    allowed, below = (1 - _CONFIDENCE) / 2 * sum(counts), 0
    for rank, count in enumerate(counts):
        below += count
        if below > allowed:
            return rank
    return 0


def _arrangements(first: int, second: int) -> list[int]:
    """In how many orders of all values u of the pairs are the wrong way round, for each u."""
    # The coefficients of the Gaussian binomial: a factor (1 - q^(second + k)) / (1 - q^k) for each k.
    counts = [1] + [0] * (first * second)
    for k in range(1, first + 1):
        for place in range(len(counts) - 1, second + k - 1, -1):
            counts[place] -= counts[place - second - k]
        for place in range(k, len(counts)):
            counts[place] += counts[place - k]
    return counts
