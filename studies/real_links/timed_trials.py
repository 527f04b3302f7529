"""Trials in the order of time, and the line through their goodputs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bentpipe.analysis.cells import cells
from bentpipe.analysis.inference import CONFIDENCE, t_quantile
from bentpipe.runs.records import CellKey, Record

LEAST = 8  # trials: a line through fewer says nothing
Z = statistics.NormalDist().inv_cdf(0.975)  # of what is normal whatever the number of trials


@dataclass(frozen=True)
class TimedTrial:
    """A trial that succeeded: when it began, and its goodput beside that of its pair."""

    record: Record
    began: datetime
    share: float

    @property
    def hour(self) -> float:
        return self.began.hour + self.began.minute / 60


@dataclass(frozen=True)
class Trend:
    """A regression line, with the interval of its slope."""

    slope: float  # as a share, a day
    intercept: float
    error: float  # half of the interval

    @property
    def changes(self) -> bool:
        """Whether the interval of the slope is on one side of 0."""
        return abs(self.slope) > self.error

    def written(self) -> str:
        """`+0.12 % a day (-0.10 to +0.34)`."""
        low, high = self.slope - self.error, self.slope + self.error
        return f"{100 * self.slope:+.2f} % a day ({100 * low:+.2f} to {100 * high:+.2f})"


def timed(records: Iterable[Record]) -> list[TimedTrial]:
    """The trials of which it is known when they began and how fast they were, in the order of time."""
    found = []
    for cell in cells(list(records)):
        mean = cell.goodput_mean_bps
        for one in cell.records:
            if one.ok and one.began and one.goodput_bps is not None and mean:
                began = datetime.strptime(one.began, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
                found.append(TimedTrial(one, began, one.goodput_bps / mean))
    return sorted(found, key=lambda trial: trial.began)


def days(trials: Sequence[TimedTrial]) -> float:
    """From the first trial to the last one."""
    return (trials[-1].began - trials[0].began).total_seconds() / 86400


def trend(trials: Sequence[TimedTrial]) -> Trend | None:
    """The line through goodputs over days from the first trial; None if they are too few, or each pair's of
    one time.

    As goodputs are shares of their pair's mean, days count from the mean of the pair's, too: pairs that run
    one after the other would else hide a change. Each pair's mean takes a degree of freedom.
    """
    after = [days([trials[0], one]) for one in trials]
    shares = [one.share for one in trials]
    within = [_within_pairs(trials, values) for values in (after, shares)]
    count, spread = len(trials), sum(day**2 for day in within[0])
    freedom = count - len({one.record.cell_key for one in trials}) - 1
    if count < LEAST or freedom < 1 or spread == 0:
        return None
    slope = sum(day * share for day, share in zip(*within, strict=True)) / spread
    start = statistics.fmean(shares) - slope * statistics.fmean(after)
    left = sum((share - slope * day) ** 2 for day, share in zip(*within, strict=True))
    return Trend(slope, start, t_quantile(CONFIDENCE, freedom) * math.sqrt(left / freedom / spread))


def _within_pairs(trials: Sequence[TimedTrial], values: Sequence[float]) -> list[float]:
    """Each value less the mean of its pair's."""
    groups: dict[CellKey, list[float]] = {}
    for one, value in zip(trials, values, strict=True):
        groups.setdefault(one.record.cell_key, []).append(value)
    means = {key: statistics.fmean(group) for key, group in groups.items()}
    return [value - means[one.record.cell_key] for one, value in zip(trials, values, strict=True)]
