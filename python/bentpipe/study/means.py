"""Means of trials with their intervals, and which of several differs by more than chance.

Model: that of `bentpipe.analysis.inference`, logarithms that are about normal, Student's t; of what may be 0,
such as a share, the values themselves.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bentpipe.analysis.inference import CONFIDENCE, on_logarithms, t_quantile
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.intervals import with_ends

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class GeometricMean:
    """A mean, and the interval that contains the truth in 95 % of cases; None of a single value."""

    value: float
    low: float | None
    high: float | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> GeometricMean | None:
        """The mean of positive values; None if there are none, or others."""
        if not values or not all(0 < value < math.inf for value in values):
            return None
        middle, error = on_logarithms(values)
        if error is None:
            return cls(values[0], None, None, 1)
        reach = t_quantile(CONFIDENCE, len(values) - 1) * math.sqrt(error) if error else 0.0
        return cls(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach), len(values))

    def written(self, factor: float = 1.0, digits: int = 2) -> str:
        """`8.74 (8.70 to 8.79)`; only the value if both ends round to the same text."""
        return with_ends(self.value, self.low, self.high, digits, factor=factor, always=False)

    def is_above(self, other: GeometricMean) -> bool:
        """Whether this interval lies above the other one; never without an interval."""
        return self.low is not None and other.high is not None and self.low > other.high


def arithmetic(
    values: Sequence[float], least: float = -math.inf, most: float = math.inf
) -> MeasuredValue | None:
    """The arithmetic mean, with Student's interval of 95 %: both ends are the value where nothing varies, and
    there are none of a single value. The interval ends at what the quantity can be, `least` to `most`. None
    without values, or if one is not finite.
    """
    if not values or not all(map(math.isfinite, values)):
        return None
    value = statistics.fmean(values)
    if len(values) == 1:
        return MeasuredValue(value, None, None)
    if min(values) == max(values):
        return MeasuredValue(values[0], values[0], values[0])
    error = statistics.stdev(values) / math.sqrt(len(values))
    reach = t_quantile(CONFIDENCE, len(values) - 1) * error
    return MeasuredValue(value, max(value - reach, least), min(value + reach, most))


def difference(first: Sequence[float], second: Sequence[float]) -> MeasuredValue | None:
    """The first arithmetic mean less the second, with Welch's interval of 95 %: both ends are the value where
    nothing varies, and there are none if one side is a single value. None if a side has no value.
    """
    if not first or not second:
        return None
    value = statistics.fmean(first) - statistics.fmean(second)
    if min(len(first), len(second)) < 2:
        return MeasuredValue(value, None, None)
    errors = [
        (0.0 if min(one) == max(one) else statistics.variance(one) / len(one), len(one) - 1)
        for one in (first, second)
    ]
    error = sum(part for part, _ in errors)
    if error == 0:
        return MeasuredValue(value, value, value)
    freedom = error**2 / sum(part**2 / count for part, count in errors)
    reach = t_quantile(CONFIDENCE, freedom) * math.sqrt(error)
    return MeasuredValue(value, value - reach, value + reach)


def best(means: Mapping[Key, GeometricMean]) -> Key | None:
    """The key whose interval lies above all others; None if there is none."""
    if len(means) < 2:
        return None
    first = max(means, key=lambda one: means[one].value)
    others = [one for name, one in means.items() if name != first]
    return first if all(means[first].is_above(one) for one in others) else None
