"""Verdicts that stop as soon as they are sure: tests on growing numbers of trials.

After 7, 14, 28 … trials somebody looks whether it is enough. Each look spends a part of the error that is
allowed, so that the chance of a wrong verdict over all looks is at most that (Bonferroni's bound; group
sequential tests: P. Armitage et al., J. R. Stat. Soc. A 132, 1969). All is said of medians, by the signs of
trials and by their order (H. A. David, H. N. Nagaraja, Order Statistics, section 7.1), which assumes nothing
of how they are distributed: trials may fall into groups, or one in ten take four times as long, so that
means and Student's t are surer than they may be. A trial that never came so far is infinite.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Side = Literal["below", "above"]
MOST_LOOKS = 5
MOST = 200  # trials of a cell that anybody may ask for
_FIRST = 0.8  # the part of the error that is spent at the first look; the others share what is left


@dataclass(frozen=True)
class Rigour:
    """The rigour of verdicts: the allowed error, and the numbers of trials at which it is decided whether
    they are sure.
    """

    error: float  # the chance of a wrong verdict
    looks: tuple[int, ...]

    @classmethod
    def of(cls, error: float, most: int, least: int = 1) -> Rigour:
        """The rigour whose first look is where trials that all agree are enough, each further one at twice as
        many; none at fewer than `least`, or, but the first, at more than `most`.
        """
        enough = math.ceil(-math.log2(_FIRST * error))
        looks = [enough * 2**number for number in range(MOST_LOOKS)]
        first = next((one for one in looks if one >= least), looks[-1])
        return cls(error, tuple(one for one in looks if first <= one <= max(most, first)))

    def shared(self, among: int) -> Rigour:
        """The rigour of each of several verdicts, where the error is that of any of them. Looks at which not
        even trials that all agree would be enough are left out.
        """
        error = self.error / max(among, 1)
        least = math.ceil(1 - math.log2(_FIRST * error))  # an interval has two sides
        late = tuple(one for one in self.looks if one >= least)
        return Rigour(error, late or (self.looks[-1],))

    def spent(self, look: int) -> float:
        """The error that may be spent at a look."""
        return self.error * (_FIRST if look == self.looks[0] else (1 - _FIRST) / (MOST_LOOKS - 1))

    def next_look(self, trials: int) -> int | None:
        """The number of trials that the look after this one needs; None if there is none."""
        return next((look for look in self.looks if trials < look), None)

    def seen(self, values: Sequence[float]) -> list[Sequence[float]]:
        """The values of each look for which there are enough."""
        return [values[:look] for look in self.looks if look <= len(values)]


@dataclass(frozen=True)
class SideFound:
    """The side on which something lies, and how many trials say so; no side: it could be chance."""

    side: Side | None
    trials: int


def median_side(logarithms: Sequence[float], rigour: Rigour) -> SideFound:
    """The side of 0 on which the median lies. 0 itself is below. `logarithms` are of measure / bound, in
    order of trials.
    """
    for seen in rigour.seen(logarithms):
        look, above = len(seen), sum(one > 0 for one in seen)
        if _tail(max(above, look - above), look) <= rigour.spent(look):
            return SideFound("above" if 2 * above > look else "below", look)
    return SideFound(None, len(logarithms))


def most_that_disagree(rigour: Rigour, look: int) -> int:
    """The number of trials of a look that may lie on the other side of a median that is sure; -1: none is."""
    allowed = rigour.spent(look)
    return next((count - 1 for count in range(look) if _tail(look - count, look) > allowed), look)


@dataclass(frozen=True)
class PairedChange:
    """The change of a measure between two samples with the same seeds: of the logarithms of now / base the
    median and its interval. Infinite: one of the two never reached it.
    """

    sure: Side | Literal["same"] | None  # of the margin; "above": now more than in the base
    pairs: int
    median: float
    low: float
    high: float


def paired_change(logarithms: Sequence[float], rigour: Rigour, margin: float) -> PairedChange:
    """The result of the logarithms of ratios, pair by pair: a change by more than `margin` that is not 0, or
    one that is less. At least one pair.
    """
    found = _interval(logarithms[: rigour.looks[0]], rigour, margin)
    for seen in rigour.seen(logarithms):
        found = _interval(seen, rigour, margin)
        if found.sure:
            return found
    return found


def _interval(seen: Sequence[float], rigour: Rigour, margin: float) -> PairedChange:
    """The median lies between two of the values, as many from either end as leave it outside by chance in no
    more cases than may be; everywhere, where there are too few.
    """
    ordered, count = sorted(seen), len(seen)
    allowed = rigour.spent(count) / 2 if count in rigour.looks else 0.0
    outer = next((rank for rank in range(count // 2 + 1) if _tail(count - rank, count) > allowed), 0)
    low, high = (ordered[outer - 1], ordered[count - outer]) if outer else (-math.inf, math.inf)
    median = statistics.median_low(ordered)
    sure: Side | Literal["same"] | None = None
    if abs(median) > margin and not low <= 0 <= high:
        sure = "above" if median > 0 else "below"
    elif -margin < low and high < margin:
        sure = "same"
    return PairedChange(sure, count, median, low, high)


def _tail(count: int, trials: int) -> float:
    """The probability that a coin falls on one side this often, or more often."""
    often = sum(math.comb(trials, one) for one in range(count, trials + 1))
    return float(often / 2**trials)
