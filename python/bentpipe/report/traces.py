"""The trace of a trial as its cell's page shows it: the series of each plot, events and findings.

The series are those of `bentpipe.plots.series`, so that the page and `bentpipe plot` show the same.
`report-ui/src/trace/model.ts` declares the shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from bentpipe.plots import series
from bentpipe.plots.table import OTHER, SENDER, Direction, Floats, Ints, Side
from bentpipe.report.columns import Columns
from bentpipe.traces import Analysis, Connection, Finding, Summary

KINDS = ("offset", "number", "size", "rate", "in_flight", "rtt", "acks")

_SECONDS = 1e-6  # what times are rounded to
_COLOURS = {"forward": "accent", "return": "series-4"}


def script(trial: str, analysis: Analysis) -> dict[str, Any]:
    """What the script of a trial holds. BentpipeError if there is no connection in the trace, ValueError if
    the analysis names a plot that there is not.
    """
    connection = analysis.connection()
    packets = series.of_connection(analysis.packets, connection["connection"])
    plots = _Plots(packets, connection)
    drawn = [{"kind": kind, "series": getattr(plots, kind)()} for kind in KINDS]
    return {
        "trial": trial,
        "notes": _notes(analysis.summary),
        "end_s": plots.end_s,
        "events": connection["events"],
        "findings": [_finding(one) for one in connection["findings"]],
        "plots": [plot for plot in drawn if plot["series"]],
        "data": plots.columns.base64(),
    }


def _notes(analysis: Summary) -> list[str]:
    notes = []
    if (connections := len(analysis["connections"])) > 1:
        notes.append(f"The trace holds {connections} connections; this is the one with the most packets.")
    if analysis["sides"] != "both":
        side = {"client": "at the client's side alone", "server": "at the server's side alone"}
        where = side.get(analysis["sides"], "at one unknown place")
        notes.append(f"Captured {where}: what was lost on the way, and when packets came, is not known.")
    notes += [f"Not decoded: {one['count']} packets: {one['what']}." for one in analysis["undecoded"]]
    return notes + analysis["errors"]


def _finding(finding: Finding) -> Finding:
    plot = finding["plot"]
    if plot is not None and plot["kind"] not in KINDS:
        raise ValueError(f"the finding {finding['rule']} names the plot {plot['kind']!r}, which there is not")
    return finding


@dataclass
class _Plots:
    """The series of each kind of plot; methods have the names of KINDS."""

    packets: pa.Table
    connection: Connection
    columns: Columns = field(default_factory=Columns)

    def __post_init__(self) -> None:
        metrics = self.connection["metrics"]
        upload = (metrics["upload_bytes"] or 0) > (metrics["stream_bytes"] or 0)
        self.data: Direction = "return" if upload else "forward"
        self.rtt_s = (metrics["rtt_min_ms"] or 0) / 1e3

    @property
    def end_s(self) -> float:
        """When the last packet passed, in seconds."""
        times = (self.packets["sent_s"].to_numpy(), self.packets["received_s"].to_numpy())
        return float(max(np.nanmax(np.append(one, 0.0)) for one in times))

    def offset(self) -> list[dict[str, Any]]:
        sent = series.offset(self.packets, self.data)
        got, known = series.received(self.packets, self.data), series.acknowledged(self.packets, self.data)
        again, lost = sent.retransmitted, sent.lost
        limit = series.credit(self.packets, self.data)
        return self._some(
            self._line("flow control limit", "series-5", limit.time_s, limit.bytes, mark="limit"),
            self._line("acknowledged", "series-8", known.time_s, known.bytes, mark="steps"),
            self._line("received, distinct bytes", "series-3", got.time_s, got.bytes, mark="steps"),
            self._dots("sent", "accent", sent.time_s[~again], sent.end[~again]),
            self._dots("retransmitted", "series-2", sent.time_s[again], sent.end[again], "retransmission"),
            self._dots("lost", "failure", sent.time_s[lost], sent.end[lost], "loss"),
        )

    def number(self) -> list[dict[str, Any]]:
        made = []
        for direction in (self.data, OTHER[self.data]):
            found = series.numbers(self.packets, direction)
            who = SENDER[direction]
            made += [
                self._dots(f"of the {who}", _COLOURS[direction], found.time_s, found.number),
                self._dots(
                    f"lost, of the {who}",
                    "failure",
                    found.time_s[found.lost],
                    found.number[found.lost],
                    "loss",
                ),
            ]
        return self._some(*made)

    def size(self) -> list[dict[str, Any]]:
        made = []
        for direction in (self.data, OTHER[self.data]):
            found = series.sizes(self.packets, direction)
            made.append(self._dots(direction, _COLOURS[direction], found.time_s, found.bytes))
        return self._some(*made)

    def rate(self) -> list[dict[str, Any]]:
        side = self._rate_side()
        made = []
        for direction in (self.data, OTHER[self.data]):
            found = series.rate(self.packets, direction, series.bin_for(self.rtt_s), side)
            middle = found.start_s + found.bin_s / 2
            pale = {"forward": "series-3", "return": "series-5"}[direction]
            made += [
                self._line(f"{direction}, raw", _COLOURS[direction], middle, found.bps("raw")),
                self._line(f"{direction}, payload", pale, middle, found.bps("payload")),
            ]
        return self._some(*made)

    def _rate_side(self) -> Side:
        """Where data arrives, behind the bottleneck; its sender if nothing was captured there."""
        receiver = SENDER[OTHER[self.data]]
        return receiver if np.isfinite(series.seen(self.packets, receiver)).any() else SENDER[self.data]

    def in_flight(self) -> list[dict[str, Any]]:
        found = series.in_flight(self.packets, self.data)
        made = [self._dots("bytes in flight", "accent", found.time_s, found.bytes)]
        qlog = self.connection.get("qlog", {}).get(SENDER[self.data], {})
        if "cwnd" in qlog:
            times, window = (np.asarray(qlog["cwnd"][name], dtype=np.float64) for name in ("time_s", "bytes"))
            made.append(self._line("cwnd (qlog)", "signal", times, window, mark="steps"))
        return self._some(*made)

    def rtt(self) -> list[dict[str, Any]]:
        found = series.rtt(self.packets, self.data)
        who = SENDER[self.data]
        return self._some(
            self._dots(f"samples of the {who}", "accent", found.time_s, found.rtt_ms, unit=1e-3)
        )

    def acks(self) -> list[dict[str, Any]]:
        found = series.acks(self.packets, self.data)
        missing = series.gaps(found)
        return self._some(
            self._ranges("acknowledged", "accent", found.time_s, found.first, found.last),
            self._ranges("missing", "series-2", missing.time_s, missing.first, missing.last),
        )

    def _dots(
        self, name: str, colour: str, times: Floats, values: Any, mark: str = "dots", unit: float = 1
    ) -> dict[str, Any] | None:
        return self._series(name, mark, colour, times, (values, None), unit)

    def _line(
        self, name: str, colour: str, times: Floats, values: Any, mark: str = "line"
    ) -> dict[str, Any] | None:
        return self._series(name, mark, colour, times, (values, None), 1)

    def _ranges(self, name: str, colour: str, times: Floats, low: Ints, high: Ints) -> dict[str, Any] | None:
        return self._series(name, "ranges", colour, times, (low, high), 1)

    def _series(
        self, name: str, mark: str, colour: str, times: Floats, values: tuple[Any, Any], unit: float
    ) -> dict[str, Any] | None:
        """None where there is nothing to draw."""
        if len(times) == 0:
            return None
        low, high = values
        return {
            "name": name,
            "mark": mark,
            "colour": colour,
            "times": self.columns.add(times, _SECONDS),
            "values": self.columns.add(low, unit),
            "tops": None if high is None else self.columns.add(high, unit),
        }

    @staticmethod
    def _some(*made: dict[str, Any] | None) -> list[dict[str, Any]]:
        return [one for one in made if one is not None]
