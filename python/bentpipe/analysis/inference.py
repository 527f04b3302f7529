"""Inference from repeated measurements: the ratio of two means with its interval, and which of many
differences are significant.

Model: the logarithms of a measure are about normal in each of two samples, whose variances may differ. Then
the difference of their means has Welch's t distribution (B. L. Welch, Biometrika 34, 1947), and its exponent
is the ratio of the geometric means. With few iterations this is what keeps its promise: a bootstrap knows no
larger spread than it has seen, so that its 95 % intervals of two means contain the truth in 76 % of cases
with three values on each side, and in 86 % with five (`tests/python/test_inference.py` measures both).

Trials with the same random draws are compared in pairs: what they have in common is left out (`paired_ratio`;
`bentpipe.analysis.cell_ratio` tells which those are).

Written out, and not scipy's: these are 57 lines, where scipy 1.17 would add 143 MB to an installation of 500,
and 0.5 s of importing `scipy.stats` to each `bentpipe compare` and report. On 4000
drawn samples both agree: quantiles, p and intervals to 2e-13, adjusted p to the last bit.

The page of a site that compares any two of its runs computes the same in the browser, in
`report-ui/src/collection/inference.ts`: every pair of runs, cell and measure would be too many to prepare.
`tests/python/test_site_comparison.py` compares what comes out of both.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
_EQUAL = 1e-6  # relative: pairs that differ by less are equal; a site's values have 7 digits


@dataclass(frozen=True)
class Ratio:
    """The ratio of the second of two samples to the first; without interval and p where one of them has a
    single value.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None  # of such a difference or a greater one where there is none


def ratio(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Ratio | None:
    """The ratio of geometric means, second / first; None where a sample is empty or has a value that is not
    positive and finite.
    """
    if not first or not second or not all(0 < value < math.inf for value in (*first, *second)):
        return None
    (mean_a, error_a), (mean_b, error_b) = on_logarithms(first), on_logarithms(second)
    difference = mean_b - mean_a
    if error_a is None or error_b is None:
        return Ratio(math.exp(difference))
    error = error_a + error_b
    if error == 0:  # nothing varies, so that a repetition would give the same
        value = math.exp(difference)
        return Ratio(value, value, value, 1.0 if difference == 0 else 0.0)
    freedom = error**2 / (error_a**2 / (len(first) - 1) + error_b**2 / (len(second) - 1))
    reach = t_quantile(confidence, freedom) * math.sqrt(error)
    return Ratio(
        math.exp(difference),
        _exp(difference - reach),
        _exp(difference + reach),
        t_test(difference / math.sqrt(error), freedom),
    )


def paired_ratio(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> Ratio | None:
    """The same where each value of `second` belongs to the one of `first` in its place, as those of trials
    with the same random draws: by Student's t distribution of the differences of logarithms. What both have
    in common is no part of the interval.
    """
    if not first or not all(0 < value < math.inf for value in (*first, *second)):
        return None
    ratios = [b / a for a, b in zip(first, second, strict=True)]
    difference, error = on_logarithms(ratios)
    if error is not None and max(ratios) / min(ratios) - 1 < _EQUAL:
        error = 0.0
        difference = 0.0 if abs(difference) < _EQUAL else difference
    value = math.exp(difference)
    if error is None:
        return Ratio(value)
    if error == 0:
        return Ratio(value, value, value, 1.0 if difference == 0 else 0.0)
    freedom, spread = len(first) - 1, math.sqrt(error)
    reach = t_quantile(confidence, freedom) * spread
    chance = t_test(difference / spread, freedom)
    return Ratio(value, _exp(difference - reach), _exp(difference + reach), chance)


def geometric_mean(values: Sequence[float]) -> float | None:
    """The geometric mean of positive values; None if there are none, or others."""
    if not values or not all(0 < value < math.inf for value in values):
        return None
    return math.exp(on_logarithms(values)[0])


def on_logarithms(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean of the logarithms of positive values, and the variance of that mean; None for a single value.
    Equal values have exactly no variance.
    """
    logarithms = [math.log(value) for value in values]
    if min(logarithms) == max(logarithms):
        return logarithms[0], 0.0 if len(values) > 1 else None
    return statistics.fmean(logarithms), statistics.variance(logarithms) / len(values)


def _exp(exponent: float) -> float:
    """Infinite where the number would be too large."""
    return math.exp(exponent) if exponent < 700 else math.inf


def adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """Each p by the rule of Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995): if all differences whose
    adjusted p is at most 5 % are called significant, at most 5 % of these are false discoveries on average.
    Where nothing could be tested, None stays None and does not count.
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    result: list[float | None] = [None] * len(p_values)
    least = 1.0
    for rank in range(len(known), 0, -1):
        p, place = known[rank - 1]
        least = min(least, p * (len(known) / rank))
        result[place] = least
    return result


def t_test(t: float, freedom: float) -> float:
    """The probability of |t| or more under Student's t distribution: the regularised incomplete beta function
    of freedom / (freedom + t²).
    """
    whole = freedom + t * t
    return _beta(freedom / whole, t * t / whole, freedom / 2, 0.5)


@functools.cache
def t_quantile(confidence: float, freedom: float) -> float:
    """The two-sided quantile of Student's t: the value that the given share of |t| does not exceed."""
    low, high = 0.0, 1.0
    while t_test(high, freedom) > 1 - confidence:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_test(middle, freedom) > 1 - confidence else (low, middle)
    return high


def exact_test(first: tuple[int, int], second: tuple[int, int]) -> float:
    """The probability of two shares (successes, trials) as unlikely as these, or more, if both sides succeed
    equally often: R. A. Fisher's exact test, two-sided (J. R. Stat. Soc. 85, 1922).
    """
    (ok_a, all_a), (ok_b, all_b) = first, second
    ok = ok_a + ok_b
    ways = [math.comb(all_a, n) * math.comb(all_b, ok - n) for n in range(ok + 1)]
    return sum(one for one in ways if one <= ways[ok_a]) / sum(ways)


def _beta(x: float, rest: float, a: float, b: float) -> float:
    """The regularised incomplete beta function of `x` from 0 to 1; `rest` is 1 - x, to the last digit."""
    if x == 0 or rest == 0:
        return x
    if x > (a + 1) / (a + b + 2):  # where the fraction of the other side converges fast
        return 1 - _beta(rest, x, b, a)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    return math.exp(logarithm) / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """Its continued fraction 1 + d₁/(1 + d₂/(1 + …)) (Abramowitz and Stegun, 26.5.8), evaluated from the
    200th term backwards: more than enough for the freedom of any number of iterations.
    """
    result = 1.0
    for n in range(200, 0, -1):
        m = n // 2
        if n % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        result = 1 + d / result
    return result
