"""Verdicts that stop as soon as they are sure: tests on growing numbers of trials.

After 7, 14, 28 … trials somebody looks whether it is enough. Each look spends a part of the error that is
allowed, so that the chance of a wrong verdict over all looks is at most that (Bonferroni's bound; group
sequential tests: P. Armitage et al., J. R. Stat. Soc. A 132, 1969). What is decided is

- on which side of a bound the median of a measure lies (`median_side`): by the signs of the trials, which
  assumes nothing of how they are distributed. A trial that never came so far is infinite;
- on which side of a bound the ratio of two samples lies (`ratio_side`): by Welch's t on logarithms;
- what became of a measure between two samples with the same seeds (`paired_change`): by Student's t on the
  logarithms of their ratios, or by signs where some are infinite.

Why not sooner: trials may fall into two groups, so that three of one of them look very sure. Seven of seven
on one side have a chance of 1 in 128 if the median lies on the other. Trials in virtual time may be the same
to the last bit: a spread of less than 0.1 % of a measure, of less than 0.01 % of a ratio with the same seeds,
counts as so much where t is asked.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bentpipe.analysis.inference import t_quantile, t_test

Side = Literal["below", "above"]
MOST_LOOKS = 5
_SPREAD = 0.001  # at the least, of the logarithm of a measure
_PAIRED_SPREAD = 0.0001  # at the least, of that of a ratio with the same seeds
_FIRST = 0.8  # the part of the error of signs that is spent at the first look; the others share what is left


@dataclass(frozen=True)
class Rigour:
    """How sure verdicts are to be, and the numbers of trials at which one looks whether they are."""

    error: float  # the chance of a wrong verdict
    looks: tuple[int, ...]

    @classmethod
    def of(cls, error: float, most: int) -> Rigour:
        """The first look is where trials that all agree are enough, each further one at twice as many; none,
        but the first, at more than `most`.
        """
        first = math.ceil(-math.log2(_FIRST * error))
        looks = (first * 2**number for number in range(MOST_LOOKS))
        return cls(error, tuple(one for one in looks if one <= max(most, first)))

    def shared(self, among: int) -> Rigour:
        """For each of so many verdicts, where the error is to be that of any of them."""
        return Rigour(self.error / max(among, 1), self.looks)

    def next_look(self, trials: int) -> int | None:
        """How many trials the look after this one needs; None if there is none."""
        return next((look for look in self.looks if trials < look), None)

    def seen(self, values: Sequence[float]) -> list[Sequence[float]]:
        """The values of each look, as far as there are so many."""
        return [values[:look] for look in self.looks if look <= len(values)]


@dataclass(frozen=True)
class SideFound:
    """On which side something lies, and how many trials say so; no side: chance could have made either."""

    side: Side | None
    trials: int


def median_side(logarithms: Sequence[float], rigour: Rigour) -> SideFound:
    """On which side of 0 the median lies. 0 itself is below. `logarithms` are of measure / bound, in order of
    trials.
    """
    for seen in rigour.seen(logarithms):
        look, above = len(seen), sum(one > 0 for one in seen)
        if _tail(max(above, look - above), look) <= _of_signs(rigour, look):
            return SideFound("above" if 2 * above > look else "below", look)
    return SideFound(None, len(logarithms))


def most_that_disagree(rigour: Rigour, look: int) -> int:
    """Of the trials of a look, how many may lie on the other side of a median that is sure; -1: none is."""
    allowed = _of_signs(rigour, look)
    return next((count - 1 for count in range(look) if _tail(look - count, look) > allowed), look)


def _of_signs(rigour: Rigour, look: int) -> float:
    """The error that signs may spend at a look."""
    return rigour.error * (_FIRST if look == rigour.looks[0] else (1 - _FIRST) / (MOST_LOOKS - 1))


def ratio_side(first: Sequence[float], second: Sequence[float], rigour: Rigour) -> SideFound:
    """On which side of 0 the difference of the means lies, second - first: of two samples of logarithms, to
    one of which the bound has been applied. As many trials of each are looked at.
    """
    for one, other in zip(rigour.seen(first), rigour.seen(second), strict=False):
        difference = statistics.fmean(other) - statistics.fmean(one)
        errors = [_error_of_mean(sample, _SPREAD) ** 2 for sample in (one, other)]
        freedom = sum(errors) ** 2 / sum(each**2 / (len(one) - 1) for each in errors)
        if t_test(abs(difference) / math.sqrt(sum(errors)), freedom) / 2 <= rigour.error / MOST_LOOKS:
            return SideFound("above" if difference > 0 else "below", len(one))
    return SideFound(None, min(len(first), len(second)))


@dataclass(frozen=True)
class PairedChange:
    """What became of a measure between two samples with the same seeds. Logarithms of now / base."""

    sure: Side | Literal["same"] | None  # of the margin; "above": now more than in the base
    pairs: int
    mean: float | None = None  # None where a trial never came so far
    low: float | None = None
    high: float | None = None
    p: float | None = None


def paired_change(logarithms: Sequence[float], rigour: Rigour, margin: float) -> PairedChange:
    """What the logarithms of ratios, pair by pair, say: a change by more than `margin` that is not 0, or one
    that is less. Infinite: one of the two never came so far.
    """
    found = PairedChange(None, len(logarithms))
    for seen in rigour.seen(logarithms) or [logarithms]:
        by_t = len(seen) > 1 and all(map(math.isfinite, seen))
        found = _by_t(seen, rigour, margin) if by_t else _by_signs(seen, rigour)
        if found.sure:
            return found
    return found


def _by_t(seen: Sequence[float], rigour: Rigour, margin: float) -> PairedChange:
    mean, error_of_mean = statistics.fmean(seen), _error_of_mean(seen, _PAIRED_SPREAD)
    reach = t_quantile(1 - rigour.error / MOST_LOOKS, len(seen) - 1) * error_of_mean
    low, high = mean - reach, mean + reach
    sure: Side | Literal["same"] | None = None
    if len(seen) < rigour.looks[0]:  # a base with fewer trials
        sure = None
    elif abs(mean) > margin and not low <= 0 <= high:
        sure = "above" if mean > 0 else "below"
    elif -margin < low and high < margin:
        sure = "same"
    return PairedChange(sure, len(seen), mean, low, high, t_test(abs(mean) / error_of_mean, len(seen) - 1))


def _by_signs(seen: Sequence[float], rigour: Rigour) -> PairedChange:
    """Of pairs of which one never came so far: whether too many changed the same way."""
    signs = [one > 0 for one in seen if one != 0]
    more = max(sum(signs), len(signs) - sum(signs))
    if not signs or 2 * _tail(more, len(signs)) > rigour.error / MOST_LOOKS:
        return PairedChange(None, len(seen))
    return PairedChange("above" if 2 * sum(signs) > len(signs) else "below", len(seen))


def _error_of_mean(sample: Sequence[float], least: float) -> float:
    return max(statistics.stdev(sample), least) / math.sqrt(len(sample))


def _tail(count: int, trials: int) -> float:
    """How probable it is that a coin falls on one side so often, or more often."""
    often = sum(math.comb(trials, one) for one in range(count, trials + 1))
    return float(often / 2**trials)
