"""The curves of a trial of which a page shows the range over many seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bentpipe.analysis.plots import queueing, series
from bentpipe.analysis.traces import Analysis
from bentpipe.report.drawings import Plots
from bentpipe.runs.records import Record
from bentpipe.schema.explore import Band, BandRange

_INTERVALS = 160  # of a range over time
_DIGITS = 6  # of a time in it
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A quantity over time."""

    times: _Floats
    values: _Floats
    steps: bool  # a value holds until the next one
    after: str  # what holds behind the last: "hold" its value, "zero", or "nothing" is known

    def at(self, times: _Floats) -> _Floats:
        """The values at other times; NaN where nothing is known."""
        if not len(self.times):
            return np.full(len(times), np.nan)
        if self.steps:
            places = np.searchsorted(self.times, times, side="right") - 1
            found = np.where(places >= 0, self.values[np.maximum(places, 0)], 0.0)
        else:
            left = np.nan if self.after == "nothing" else 0.0
            found = np.interp(times, self.times, self.values, left=left)
        if self.after != "hold":
            found = np.where(times > self.times[-1], 0.0 if self.after == "zero" else np.nan, found)
        return found

    def extremes(self, bounds: _Floats) -> tuple[_Floats, _Floats]:
        """The least and the greatest value in each interval between neighbouring bounds, these included; NaN
        where nothing is known.
        """
        ends = self.at(bounds)
        low, high = np.fmin(ends[:-1], ends[1:]), np.fmax(ends[:-1], ends[1:])
        places = np.searchsorted(bounds, self.times, side="right") - 1
        within = (places >= 0) & (places < len(low))
        np.fmin.at(low, places[within], self.values[within])
        np.fmax.at(high, places[within], self.values[within])
        return low, high


@dataclass(frozen=True)
class TrialCurves:
    """The curves of a trial, by the kind of their plot."""

    end_s: float
    curves: dict[str, Curve]

    @classmethod
    def of(cls, analysis: Analysis) -> TrialCurves:
        """Of the connection that a trial's page shows."""
        connection = analysis.connection()
        packets = series.of_connection(analysis.packets, connection.connection)
        plots = Plots(packets, connection, analysis.link)
        got, flight = series.received(packets, plots.data), series.in_flight(packets, plots.data)
        waiting, rtt = (
            queueing.queue(packets, plots.data, plots.side).waiting,
            series.rtt(packets, plots.data),
        )
        rate = series.rate(packets, plots.data, series.bin_for(plots.rtt_s), plots.rate_side())
        middle = rate.start_s + rate.bin_s / 2
        return cls(
            plots.end_s,
            {
                "offset": _curve(got.time_s, got.bytes, True, "hold"),
                "rate": _curve(middle, rate.bps("raw"), False, "zero"),
                "in_flight": _curve(flight.time_s, flight.bytes, True, "zero"),
                "rtt": _curve(rtt.time_s, rtt.rtt_ms, False, "nothing"),
                "queue": _curve(waiting.time_s, waiting.bytes, True, "zero"),
            },
        )


def _curve(times: npt.NDArray[np.generic], values: npt.NDArray[np.generic], steps: bool, after: str) -> Curve:
    return Curve(times.astype(np.float64), values.astype(np.float64), steps, after)


def band(records: Sequence[Record], found: Sequence[TrialCurves]) -> Band:
    """The range of the curves of trials, and the results in their records."""
    return Band(
        trials=len(records),
        completion_s=sorted(one.completion_s for one in records if one.ok and one.completion_s is not None),
        failed=sum(not one.ok for one in records),
        ranges=list(_ranges(found)) if len(found) > 1 else [],
    )


def _ranges(found: Sequence[TrialCurves]) -> list[BandRange]:
    """The range of each kind of curve. No curve leaves it between two times, either: at each time it has the
    extremes of both intervals beside that.
    """
    times = np.linspace(0, max(one.end_s for one in found), _INTERVALS + 1)
    made = []
    for kind in found[0].curves:
        lows, highs = zip(*(one.curves[kind].extremes(times) for one in found), strict=True)
        low, high = np.fmin.reduce(lows), np.fmax.reduce(highs)
        low = np.fmin(np.append(low, np.nan), np.insert(low, 0, np.nan))
        high = np.fmax(np.append(high, np.nan), np.insert(high, 0, np.nan))
        known = ~np.isnan(low)
        if not known.any():
            continue
        made.append(
            BandRange(
                kind=kind,
                times=_rounded(times[known], _DIGITS),
                low=_rounded(low[known], 1),
                high=_rounded(high[known], 1),
            )
        )
    return made


def _rounded(values: _Floats, digits: int) -> list[float]:
    rounded: list[float] = np.round(values, digits).tolist()
    return rounded
