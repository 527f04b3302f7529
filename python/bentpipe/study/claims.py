"""Claims of publications: what a source says, what trials measured, and the verdict, by one rule for all
studies.

Model: `docs/reference/study-verdicts.md` has the rule in words; this module is the only place that applies
it. A claim is data, so that tables, forest plots and tests are made from the same one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, overload

from bentpipe.analysis.inference import Ratio
from bentpipe.study.intervals import with_ends
from bentpipe.study.markdown import listed, several, table

AGREES, SAME_DIRECTION, CONTRADICTS, CANNOT_TELL = (
    "agrees",
    "same direction",
    "contradicts",
    "cannot tell",
)
VERDICTS = (AGREES, SAME_DIRECTION, CONTRADICTS, CANNOT_TELL)
NOT_JUDGED = "not judged"  # of a claim that no interval can decide: no verdict, and in no tally
RULE = """*Agrees*: our interval holds the published value and is narrow, or all of it keeps a bound; *same
direction*: it lies on the same side of no effect and does not agree, or the source names a side and no value;
*contradicts*: it lies on the other side, or is no effect throughout, or beyond a bound, or the source names a
value alone and the interval does not hold it; *cannot tell*: the interval holds no effect, too, or both sides
of a bound, or is wider than what it would confirm. [The rule](../../docs/reference/study-verdicts.md) is the
same in all studies."""
READING = 0.02  # of a published value: how exactly it is known where its source gives no interval
NO_EFFECT = 1.02  # a ratio that is nearer to 1 than this factor is no effect
WIDEST = 1.5  # from end to end: a wider interval confirms no value
MARGIN = 0.05  # two means that differ by less are equal
_SAME = (1 / NO_EFFECT, NO_EFFECT)


class WithInterval(Protocol):
    """A mean or a ratio of means, with the ends of its interval; None without."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


@dataclass(frozen=True)
class MeasuredValue:
    """A value from trials, and its interval: the one that contains the truth in 95 % of cases."""

    value: float
    low: float | None
    high: float | None  # infinite where trials were cut, so that there is a lower bound alone

    @overload
    @classmethod
    def of(cls, one: WithInterval) -> MeasuredValue: ...

    @overload
    @classmethod
    def of(cls, one: WithInterval | None) -> MeasuredValue | None: ...

    @classmethod
    def of(cls, one: WithInterval | None) -> MeasuredValue | None:
        """A mean, or a ratio of means, as a measured value."""
        return None if one is None else cls(one.value, one.low, one.high)

    def written(self, digits: int = 2, unit: str = "", factor: float = 1.0) -> str:
        """`1.66 (1.20 to 2.31)`; only the value without an interval, or if both ends round to one text."""
        return with_ends(self.value, self.low, self.high, digits, unit=unit, factor=factor, always=False)


@dataclass(frozen=True)
class Published:
    """What a source says of a quantity: the values that it may have, the side of no effect on which it lies,
    or both; nothing, if no trial can judge it.
    """

    low: float | None = None
    high: float | None = None
    none: tuple[float, float] | None = None  # what counts as no effect: about 1 of a ratio, 0 of a difference
    above: bool = True  # the side of it
    is_bound: bool = False  # whether all values are said to be within `low` and `high`

    @classmethod
    def number(cls, value: float, within: float = READING) -> Published:
        """A value without a side, such as a goodput."""
        return cls(*_around(value, within))

    @classmethod
    def ratio(cls, value: float, within: float = READING) -> Published:
        """A ratio, which is on one side of 1, or no effect if it is about 1."""
        return cls.ratio_of(value, *_around(value, within))

    @classmethod
    def ratio_of(cls, value: float, low: float, high: float) -> Published:
        """A ratio that is known to lie between these."""
        if _SAME[0] <= value <= _SAME[1]:
            return cls(*_SAME, is_bound=True)
        return cls(low, high, _SAME, value > 1)

    @classmethod
    def difference(cls, value: float, least: float, within: float = READING) -> Published:
        """A difference, which is on one side of 0; less than `least`, either way, is no effect."""
        return cls(*_around(value, within), (-least, least), value > 0)

    @classmethod
    def side(cls, *, above: bool, least: float | None = None) -> Published:
        """A ratio's side of 1, and no value; with `least` a difference's side of 0, less than which is no
        effect.
        """
        return cls(none=_SAME if least is None else (-least, least), above=above)

    @classmethod
    def at_most(cls, limit: float) -> Published:
        """A bound: what comes close to it keeps it, too."""
        return cls(-math.inf, limit, is_bound=True)


def _around(value: float, within: float) -> tuple[float, float]:
    reach = abs(value) * within
    return value - reach, value + reach


def verdict(measured: MeasuredValue | None, published: Published) -> str:
    """The verdict on what a source says, by the interval of what was measured."""
    if published == Published():
        return NOT_JUDGED
    if measured is None or measured.low is None or measured.high is None:
        return CANNOT_TELL
    low, high = measured.low, measured.high
    if not (math.isfinite(measured.value) and math.isfinite(low)) or math.isnan(high):
        return CANNOT_TELL
    has_value = published.low is not None and published.high is not None
    holds = has_value and low <= (published.high or 0.0) and high >= (published.low or 0.0)
    if published.is_bound:
        return _of_bound(low, high, published) if holds else CONTRADICTS
    agrees = holds and _narrow(low, high)
    if published.none is not None:
        return _of_side(low, high, published, holds=holds, agrees=agrees)
    if not holds:
        return CONTRADICTS
    return AGREES if agrees else CANNOT_TELL


def _of_bound(low: float, high: float, published: Published) -> str:
    """The verdict by an interval that has values within a bound."""
    is_within = (published.low or 0.0) <= low and high <= (published.high or 0.0)
    return AGREES if is_within else CANNOT_TELL


def _of_side(low: float, high: float, published: Published, *, holds: bool, agrees: bool) -> str:
    """The verdict where the source names a side of no effect."""
    least, most = published.none or _SAME
    if least <= low and high <= most:
        return CANNOT_TELL if holds else CONTRADICTS
    if low <= most and high >= least:
        return CANNOT_TELL
    if (low > most) != published.above:
        return CONTRADICTS
    return AGREES if agrees else SAME_DIRECTION


def _narrow(low: float, high: float) -> bool:
    """Whether an interval confirms a value that it holds: both ends have one sign, and one is not far more
    than the other.
    """
    near, far = sorted((abs(low), abs(high)))
    return low == high or (low * high > 0 and far <= WIDEST * near)


def equality(one: Ratio | None, margin: float = MARGIN) -> str:
    """The verdict on the claim that two means are equal, by their ratio and the interval of two one-sided
    tests (`bentpipe.analysis.cell_ratio`): it agrees where the whole interval is within the
    margin, contradicts where it is all beyond it, and cannot tell where it is on both sides.
    """
    if one is None or one.low is None or one.high is None:
        return CANNOT_TELL
    least, most = 1 / (1 + margin), 1 + margin
    if least <= one.low and one.high <= most:
        return AGREES
    return CONTRADICTS if one.low > most or one.high < least else CANNOT_TELL


@dataclass(frozen=True)
class Claim:
    """A claim of a source, what was measured of it, and the verdict."""

    text: str
    said: str  # what the source says, as it is shown
    published: Published
    measured: MeasuredValue | None
    here: str  # what was measured, as it is shown
    label: str = ""  # in a forest plot; of a claim that has none it is not drawn
    note: str = ""  # behind the verdict

    @property
    def verdict(self) -> str:
        return verdict(self.measured, self.published)

    def row(self) -> list[str]:
        """As a row of `rows`."""
        return [self.text, self.said, self.here, self.verdict + (f"; {self.note}" if self.note else "")]


@dataclass(frozen=True)
class EqualMeans:
    """The claim that two means are equal within a margin: their ratio, and the interval of two one-sided
    tests.
    """

    label: str
    ratio: Ratio | None

    @property
    def measured(self) -> MeasuredValue | None:
        return MeasuredValue.of(self.ratio)

    @property
    def published(self) -> Published:
        """No value: that the ratio is 1 is what it claims."""
        return Published()

    @property
    def verdict(self) -> str:
        return equality(self.ratio)


def rows(claims: Sequence[Claim], source: str) -> str:
    """The table of claims; `source` is whom they are of, such as `the thesis says`."""
    return table([source, "its figures", "here", "verdict"], [one.row() for one in claims], left=4)


def judged(claims: Iterable[Claim]) -> list[Claim]:
    """The claims that trials can judge: what a page counts."""
    return [one for one in claims if one.verdict != NOT_JUDGED]


def tally(verdicts: Iterable[str]) -> str:
    """`2 agree, 3 go in the same direction, 1 contradicts and 4 cannot be told`."""
    counts = Counter(verdicts)
    words = {
        AGREES: ("agrees", "agree"),
        SAME_DIRECTION: ("goes in the same direction", "go in the same direction"),
        CONTRADICTS: ("is contradicted", "are contradicted"),
        CANNOT_TELL: ("cannot be told", "cannot be told"),
    }
    parts = [f"{counts[one]} {words[one][counts[one] != 1]}" for one in VERDICTS if counts[one]]
    return listed(parts) if parts else several(0, "claim")


def is_narrow(measured: MeasuredValue | None) -> bool:
    """Whether an interval is narrow enough to stand in a title."""
    if measured is None or measured.low is None or measured.high is None:
        return False
    return measured.low > 0 and math.isfinite(measured.high) and _narrow(measured.low, measured.high)
