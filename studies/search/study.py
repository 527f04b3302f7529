"""The quantities of the page on SEARCH: what the source measures over all runs of a variant, or of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from bentpipe import labels
from bentpipe.runs.records import Record
from bentpipe.study.quantiles import quantile
from bentpipe.study.slow_starts import BASELINE, MB, VariantTrials, groups
from bentpipe.study.source import Source
from bentpipe.study.variants import short_names

from .published import PublishedCounts, Search

QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class SlowStartComparison:
    """The records of several slow starts over one path, one of them the baseline."""

    records: Sequence[Record]
    # Before that, a loss is one of the medium, where every trial has lost something there.
    otherwise_s: float = field(default=0.0, kw_only=True)

    @cached_property
    def groups(self) -> list[VariantTrials]:
        """All variants, the baseline first."""
        found = groups(self.records, self.otherwise_s)
        return sorted(found, key=lambda one: one is not _baseline(found))

    @property
    def is_one(self) -> bool:
        """Whether there is a baseline, and something to compare with it, over one path."""
        paths = {(one.scenario, one.workload, one.client) for one in self.records}
        return len(self.groups) > 1 and _baseline(self.groups) is not None and len(paths) == 1

    @property
    def baseline(self) -> VariantTrials:
        return self.groups[0]

    @property
    def others(self) -> list[VariantTrials]:
        return self.groups[1:]

    @cached_property
    def _names(self) -> dict[str, str]:
        return short_names([one.server for one in self.groups])

    def name(self, group: VariantTrials) -> str:
        return self._names[group.server]

    def number(self, group: VariantTrials) -> int:
        """Its place in all figures."""
        return self.groups.index(group)

    @cached_property
    def sizes_mb(self) -> range:
        """1 MB, 2 MB, and so on up to the whole file."""
        return range(1, self.records[0].size_bytes // MB + 1)

    @property
    def paces(self) -> bool:
        return any(labels.variant(one.server).options.get("pacing") != "off" for one in self.groups)

    @property
    def leads(self) -> list[float] | None:
        """How long before the first loss SEARCH says that slow start should end, in round trips, of each
        clean run that only logs this; None if there is no such variant.
        """
        if self.baseline.slow_start != "search-log":
            return None
        return [lead for one in self.baseline.clean if (lead := one.lead_round_trips) is not None]

    @cached_property
    def cuts(self) -> list[tuple[VariantTrials, list[float]]]:
        """By variant, the shares of the window that SEARCH took off, or would have taken off. Variants that
        never do are left out.
        """
        found = [(group, self.taken_off(group)) for group in self.groups]
        return [(group, cuts) for group, cuts in found if any(cut > 0 for cut in cuts)]

    def taken_off(self, group: VariantTrials) -> list[float]:
        """Of each clean run with an exit, the share of the window that SEARCH took off, or would have."""
        return [cut for one in group.clean if (cut := one.taken_off) is not None]

    def times(self, group: VariantTrials, size_mb: int) -> list[float]:
        """The time at which each clean run of a variant has `size_mb` MB."""
        return group.times(size_mb * MB)

    def saved(self, group: VariantTrials, size_mb: int) -> list[float | None]:
        """How many seconds sooner than the baseline it has `size_mb` MB, by the lower quartile, the median
        and the upper quartile.
        """
        then, now = (self.times(one, size_mb) for one in (self.baseline, group))
        return [_minus(quantile(then, share), quantile(now, share)) for share in QUARTILES]

    def most_saved(self, group: VariantTrials, beyond_mb: int = 0) -> tuple[float, int] | None:
        """By medians: seconds, and MB, of sizes beyond so many."""
        found = [(self.saved(group, size)[1], size) for size in self.sizes_mb if size > beyond_mb]
        return max(((gap, size) for gap, size in found if gap is not None), default=None)

    def least_saved(self, group: VariantTrials) -> tuple[float, int] | None:
        """By medians: the fewest seconds, below zero where it is later, and MB."""
        found = [(self.saved(group, size)[1], size) for size in self.sizes_mb]
        return min(((gap, size) for gap, size in found if gap is not None), default=None)

    def gaps(self, group: VariantTrials, size_mb: int) -> list[float]:
        """The time by which each percentile is sooner than the baseline's; 0 where neither is reached."""
        shares = [(number + 0.5) / 100 for number in range(100)]
        then, now = (_at(self.times(one, size_mb), shares) for one in (self.baseline, group))
        return [0.0 if one == other else one - other for one, other in zip(then, now, strict=True)]


@dataclass(frozen=True)
class ArrivalComparison(SlowStartComparison):
    """A comparison by the bytes that have arrived, in whatever order."""

    def times(self, group: VariantTrials, size_mb: int) -> list[float]:
        """The time of arrival of `size_mb` MB in each clean run of a variant."""
        return group.arrivals(size_mb * MB)


@dataclass(frozen=True)
class PublishedComparison(SlowStartComparison):
    """The records of a run, and what was published."""

    source: Source
    known: Search

    def then(self, group: VariantTrials) -> PublishedCounts | None:
        """The published counts of this slow start."""
        return self.known.runs.get("baseline" if group is self.baseline else group.slow_start)


def _baseline(found: Sequence[VariantTrials]) -> VariantTrials | None:
    mine = [one for one in found if one.slow_start in BASELINE]
    return min(mine, key=lambda one: BASELINE.index(one.slow_start), default=None)


def _at(values: Sequence[float], shares: Sequence[float]) -> list[float]:
    return [math.inf if (one := quantile(values, share)) is None else one for share in shares]


def _minus(one: float | None, other: float | None) -> float | None:
    if one is None or other is None or not (math.isfinite(one) and math.isfinite(other)):
        return None
    return one - other
