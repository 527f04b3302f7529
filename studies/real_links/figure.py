"""The figure of goodputs over days and over the hours of the day."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe.analysis.plots.canvas import BLUE, VERMILLION
from bentpipe.study.figures import drawing

from .timed_trials import TimedTrial, Trend

_HEIGHT_MM = 62


def draw(trials: Sequence[TimedTrial], trend: Trend | None, path: Path) -> None:
    """Two panels: a dot for each trial, its goodput in percent of its pair's mean."""
    days = [(one.began - trials[0].began).total_seconds() / 86400 for one in trials]
    with drawing(path, "goodput of every trial over time", _HEIGHT_MM) as made:
        over_days, over_hours = made.subplots(1, 2, sharey=True)
        over_days.plot(days, [100 * one.share for one in trials], ".", color=BLUE)
        if trend is not None and days[-1] >= 1:
            ends = (days[0], days[-1])
            line = [100 * (trend.intercept + trend.slope * day) for day in ends]
            over_days.plot(ends, line, color=VERMILLION)
        over_days.set_xlabel(f"days from {trials[0].began:%Y-%m-%d %H:%M} UTC")
        over_days.set_ylabel("goodput, % of the pair's mean")
        over_hours.plot([one.hour for one in trials], [100 * one.share for one in trials], ".", color=BLUE)
        over_hours.set_xlim(0, 24)
        over_hours.set_xticks(range(0, 25, 4))
        over_hours.set_xlabel("hour of the day, UTC")
