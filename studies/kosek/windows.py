"""Congestion windows over time: the server's without proxies, the gateway's and the server's with them.

They are what the senders logged (qlog) in the one trial of each setting whose trace the run kept. With
proxies each hop has a trace of its own, and a sender's log is read with the trace of the hop that it sends
over: given all logs, the analysis takes that of any hop for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from bentpipe.analysis import traces
from bentpipe.analysis.plots.canvas import BLUE, GREEN, GREY, VERMILLION
from bentpipe.analysis.traces import Analysis, TracedRun
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import Record
from bentpipe.runs.trial_files import QLOGS, is_traced
from bentpipe.study.figures import drawing, legend_above
from bentpipe.study.front import folded
from bentpipe.study.markdown import number, table, trials
from bentpipe.study.source import Source, pooled

from .runs import Floats, LossyPath

CAMPAIGN = "kosek-windows"
FILE = "kosek-windows.svg"
SERVER, GATEWAY, BEHIND = "server, direct", "gateway, proxies", "server, proxies"
_SENDERS = (SERVER, GATEWAY, BEHIND)
_LOOKS = {SERVER: (BLUE, "-"), GATEWAY: (VERMILLION, "--"), BEHIND: (GREEN, "-.")}
_HOPS = {"gateway": GATEWAY, "server": BEHIND}  # the end of a hop that sends the file over it
_ROW_MM, _LEGEND_MM = 42, 10
_TICKS = (0.01, 0.1, 1, 10)  # MB
_LEAST, _MOST = 0.005, 40
_LATE_S = 15.0
MB = 1e6

_TEXT = """The source's tool measures the server's congestion window. Neither its figures nor its dataset show
it, so there is nothing to compare with. The figure has the windows that the senders logged, in one trial of
each setting: the median of {counts}. Without proxies the server's window covers the whole path. With proxies
the gateway's covers the satellite hop, and the server's the way to the gateway alone, where nothing is lost:
it grows until the gateway's buffer limits the server, and stays. Linux's TCP logs no window, so TCP is not
shown."""
_CAPTION = "Congestion windows of server and gateway over time, over QUIC"
_COLUMNS = """*Reaches BDP* is the time since the client's first packet at which the window is first as large
as the bandwidth-delay product of its own connection: the satellite's rate times the connection's minimum RTT.
A window at a given time is that of the last change before."""


@dataclass(frozen=True)
class WindowCourse:
    """A sender's congestion window in a trial: a value from each of these times on."""

    times_s: Floats  # since the client's first packet
    bytes: Floats
    rtt_s: float  # the minimum of its connection

    def at(self, time_s: float) -> float | None:
        """The window at that time; None before its first value."""
        place = int(np.searchsorted(self.times_s, time_s, side="right"))
        return float(self.bytes[place - 1]) if place else None

    def reaches(self, least: float) -> float | None:
        """The time at which it is first as large as that; None if it never is."""
        there = self.bytes >= least
        return float(self.times_s[int(np.argmax(there))]) if there.any() else None


@dataclass(frozen=True)
class WindowRuns:
    """The runs that kept traces and logs: the courses of each setting."""

    sources: tuple[Source, ...]

    @cached_property
    def courses(self) -> dict[LossyPath, dict[str, WindowCourse]]:
        """By path and sender, in order of paths and losses."""
        found: dict[LossyPath, dict[str, WindowCourse]] = {}
        for source in self.sources:
            run = TracedRun.read(source.folder)
            for record in source.in_order:
                folder = source.folder / "trials" / record.trial
                if record.outcome == "ok" and is_traced(folder):
                    found.setdefault(LossyPath.of(record.scenario), {}).update(_of_trial(folder, run, record))
        return {road: one for road, one in found.items() if one}

    def rate_bps(self, road: LossyPath) -> float:
        """The rate of the link towards the client."""
        return next(
            float(entry.summary["forward_rate_bps"])
            for source in self.sources
            for label, entry in source.manifest.scenarios.items()
            if LossyPath.of(label) == road
        )

    @property
    def counts(self) -> set[int]:
        """How many trials the settings have."""
        found: dict[tuple[str, str], int] = {}
        for record in pooled(self.sources):
            found[record.scenario, record.treatment] = found.get((record.scenario, record.treatment), 0) + 1
        return set(found.values())


def sections(sources: Sequence[Source], folder: Path) -> tuple[list[str], list[Path]]:
    """The section, and its figure, drawn into `folder`; nothing where no trial has a trace and a log."""
    runs = WindowRuns(tuple(sources))
    if not runs.courses:
        return [], []
    file = folder / FILE
    _draw(runs, file)
    text = _TEXT.format(counts=trials(runs.counts))
    parts = ["## Congestion windows", text, f"![{_CAPTION}]({file.name})"]
    return [*parts, *folded("Congestion windows", _table(runs), _COLUMNS)], [file]


def _of_trial(folder: Path, run: TracedRun, record: Record) -> dict[str, WindowCourse]:
    """The windows of the senders of a trial."""
    first = traces.of_trial(folder, run)
    begin_s = float(first.connection().start_unix_s)
    if record.treatment == DIRECT:
        courses = {SERVER: _course(first, begin_s)}
    else:
        courses = {}
        for capture in first.other_hops:
            end = capture.stem.rpartition("-")[2]
            logs = sorted(path for path in (folder / QLOGS / end).glob("*") if path.is_file())
            hop = traces.analyse([capture], traces.temporary(), qlogs=logs)
            courses[_HOPS[end]] = _course(hop, begin_s)
    return {name: one for name, one in courses.items() if one is not None}


def _course(hop: Analysis, begin_s: float) -> WindowCourse | None:
    """The window that the server's side of a hop logged; None if it did not, or its RTT was not measured."""
    connection = hop.connection()
    window, rtt_ms = traces.logged_window(connection, "server"), connection.metrics.rtt_min_ms
    if window is None or rtt_ms is None:
        return None
    times = np.array(window.time_s) + float(connection.start_unix_s) - begin_s
    return WindowCourse(times, np.array(window.bytes, dtype=np.float64), rtt_ms / 1e3)


def _table(runs: WindowRuns) -> str:
    rows = []
    for road, courses in runs.courses.items():
        cells = [road.title]
        for name in _SENDERS:
            one = courses.get(name)
            if one is None:
                cells += ["-"] * 3
                continue
            reached = one.reaches(runs.rate_bps(road) / 8 * one.rtt_s)
            late = one.at(_LATE_S)
            cells += [
                "never" if reached is None else number(reached, 2, " s"),
                number(float(one.bytes.max()) / MB),
                number(None if late is None else late / MB),
            ]
        rows.append(cells)
    head = [""]
    for name in _SENDERS:
        head += [f"{name}: reaches BDP", "largest, MB", f"at {_LATE_S:g} s, MB"]
    return table(head, rows)


def _draw(runs: WindowRuns, path: Path) -> None:
    """A row of panels for each scenario, a panel for each loss."""
    names = list(dict.fromkeys(road.scenario for road in runs.courses))
    rows = [sorted((one for one in runs.courses if one.scenario == name), key=lambda one: one.share)
            for name in names]  # fmt: skip
    shown = [name for name in _SENDERS if any(name in one for one in runs.courses.values())]
    keys = [Line2D([], [], color=_LOOKS[name][0], ls=_LOOKS[name][1], lw=1, label=name) for name in shown]
    keys.append(Line2D([], [], color=GREY, lw=0.8, ls=":", label="BDP of the path"))
    across = max(map(len, rows))
    with drawing(path, "congestion windows", _ROW_MM * len(rows) + _LEGEND_MM) as made:
        grid = made.subplots(len(rows), across, squeeze=False, sharex=True, sharey=True)
        for line, roads in zip(grid, rows, strict=True):
            for place, axes in enumerate(line):
                if place >= len(roads):
                    axes.set_axis_off()
                    continue
                axes.set_title(f"{roads[place].title} loss")
                _panel(axes, runs, roads[place])
            line[0].set_ylabel("congestion window (MB)")
        for axes in grid[-1]:
            axes.set_xlabel("since the first packet (s)")
        legend_above(made, keys, len(keys))


def _panel(axes: Axes, runs: WindowRuns, road: LossyPath) -> None:
    courses = runs.courses[road]
    if (direct := courses.get(SERVER)) is not None:
        axes.axhline(runs.rate_bps(road) / 8 * direct.rtt_s / MB, color=GREY, lw=0.8, ls=":", zorder=1)
    for name in _SENDERS:
        if (one := courses.get(name)) is not None:
            colour, dashes = _LOOKS[name]
            times = np.append(one.times_s, max(_LATE_S, float(one.times_s[-1])))
            values = np.append(one.bytes, one.bytes[-1]) / MB
            axes.step(times, values, where="post", color=colour, ls=dashes, lw=1, zorder=3)
    axes.set_xlim(0, _LATE_S)
    axes.set_yscale("log")
    axes.set_ylim(_LEAST, _MOST)
    axes.set_yticks(_TICKS)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
