"""Trials in the order of time, and the line through their goodputs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bentpipe.analysis.cells import cells
from bentpipe.analysis.inference import CONFIDENCE, t_quantile
from bentpipe.runs.records import Record

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
    """The line through goodputs over days from the first trial; None if they are too few, or of one time."""
    after = [days([trials[0], one]) for one in trials]
    shares = [one.share for one in trials]
    count, mean_day, mean_share = len(after), statistics.fmean(after), statistics.fmean(shares)
    spread = sum((day - mean_day) ** 2 for day in after)
    if count < LEAST or spread == 0:
        return None
    slope = sum((day - mean_day) * share for day, share in zip(after, shares, strict=True)) / spread
    start = mean_share - slope * mean_day
    left = sum((share - start - slope * day) ** 2 for day, share in zip(after, shares, strict=True))
    reach = t_quantile(CONFIDENCE, count - 2)
    return Trend(slope, start, reach * math.sqrt(left / (count - 2) / spread))
