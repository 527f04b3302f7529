"""How much longer transfers take in Bentpipe than in another simulator, and whether the two are equal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe.analysis.cell_ratio import EQUIVALENCE
from bentpipe.analysis.inference import CONFIDENCE, ratio
from bentpipe.study.claims import AGREES, CANNOT_TELL, CONTRADICTS, MeasuredValue, equality

HOW = """*Difference* is by how much the geometric mean of Bentpipe's times is above that of the other
simulator's, which draws for itself. Two times are equal within a margin by two one-sided tests at 5 %: the
interval of 90 % of their ratio lies within the margin (Welch, on logarithms). They differ if it lies beyond;
otherwise these trials cannot tell, nor where one of Bentpipe's failed. The picture has these intervals."""


@dataclass(frozen=True)
class Difference:
    """The difference between the times of two simulators, in seconds."""

    theirs: Sequence[float]
    ours: Sequence[float]
    margin: float  # as a share: what is nearer is equal
    failed: int = 0  # of our trials: mostly slow ones, so that the others say nothing of the mean

    @cached_property
    def verdict(self) -> str:
        """Whether both are equal within the margin: AGREES, CONTRADICTS or CANNOT_TELL."""
        if self.failed:
            return CANNOT_TELL
        return equality(ratio(self.theirs, self.ours, EQUIVALENCE), self.margin)

    @property
    def is_equal(self) -> bool:
        return self.verdict == AGREES

    @property
    def differs(self) -> bool:
        return self.verdict == CONTRADICTS

    @cached_property
    def percent(self) -> MeasuredValue:
        """By how much Bentpipe's mean is above the other, in percent, with the interval of 95 %."""
        return self._percent(CONFIDENCE)

    @cached_property
    def of_two_tests(self) -> MeasuredValue:
        """The same with the interval that decides whether they are equal."""
        return self._percent(EQUIVALENCE)

    def _percent(self, confidence: float) -> MeasuredValue:
        found = ratio(self.theirs, self.ours, confidence)
        if found is None:
            raise ValueError("no time, or one that is not positive")
        low, high = (None if end is None else 100 * (end - 1) for end in (found.low, found.high))
        return MeasuredValue(100 * (found.value - 1), low, high)

    @property
    def size(self) -> float:
        """The difference without its sign, in percent."""
        return abs(self.percent.value)

    def written(self) -> str:
        """`+0.8 % (+0.7 to +0.9)`; only the value without an interval, or if both ends round to one text."""
        low, high = self.percent.low, self.percent.high
        text = f"{self.percent.value:+.1f} %"
        if low is None or high is None or f"{low:+.1f}" == f"{high:+.1f}":
            return text
        return f"{text} ({low:+.1f} to {high:+.1f})"


def widest(differences: Iterable[Difference]) -> Difference:
    """The largest of them, either way; at least one."""
    return max(differences, key=lambda one: one.size)
