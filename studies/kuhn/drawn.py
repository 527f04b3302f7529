"""The figures of the page: received data and received rate over time, a panel for each place of losses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from bentpipe.analysis.plots.canvas import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILLION
from bentpipe.study.figures import drawing, legend_above

from .published import Objectives
from .runs import ACCESS, CLEAN, SATELLITE, SIZES, KuhnRuns, Sender, rate

_HEIGHT_MM, _LEGEND_MM = 68, 12
_STEP_S = 0.05
WINDOW_S = 1.2  # of a rate: two round trips
_LEAST_MB = 0.1
_HIGHEST_MBPS = {CLEAN: 60.0, ACCESS: 270.0, SATELLITE: 100.0}
_UNTIL_S = {CLEAN: 35.0, ACCESS: 35.0, SATELLITE: 35.0}
TITLES = {
    CLEAN: "50/10 Mbit/s, no losses",
    ACCESS: "250/3 Mbit/s, 1 % between terminal and client",
    SATELLITE: "250/3 Mbit/s, 1 % on the satellite",
}
NAMES = {"data": "Received data over time", "rate": "Received rate over time"}
# As in the source: purple without proxies, A green, B blue, C orange; D is yellow there, vermillion here.
_LOOKS: dict[str, tuple[str, object]] = {
    "none": (PURPLE, (0, (5, 1.5))),
    "A": (GREEN, (0, (1, 1))),
    "B": (BLUE, (0, (3, 1, 1, 1))),
    "C": (ORANGE, "-"),
    "D": (VERMILLION, "-"),
}
_QUIC: list[tuple[str, object]] = [(BLACK, (0, (1, 2))), (BLACK, "-"), (GREY, "-")]


def draw(runs: KuhnRuns, objectives: dict[str, Objectives], folder: Path) -> dict[str, Path]:
    """Draw both: name → file."""
    files = {name: folder / f"kuhn-{name}.svg" for name in NAMES}
    places = [place for place in TITLES if runs.senders(place)]
    for name, path in files.items():
        with drawing(path, NAMES[name], _HEIGHT_MM + _LEGEND_MM) as made:
            grid = made.subplots(1, len(places), squeeze=False)[0]
            for place, axes in zip(places, grid, strict=True):
                _panel(runs, place, axes, name)
                if name == "data":
                    _mark(axes, objectives["clean" if place == CLEAN else "lossy"])
                axes.set_title(TITLES[place])
                axes.set_xlim(0, _UNTIL_S[place])
                axes.set_xlabel("time since the request (s)")
            grid[0].set_ylabel("received (MB)" if name == "data" else "received rate (Mbit/s)")
            legend_above(made, _keys(runs, places, name), 5)
    return files


def _drawn(runs: KuhnRuns, place: str) -> list[tuple[str, Sender, tuple[str, object]]]:
    """The senders with curves, and their looks."""
    tcp = [
        (f"TCP, {'no proxies' if word == 'none' else f'proxies {word}'}", sender, _LOOKS[word])
        for word, sender in runs.configured(place).items()
        if word in _LOOKS
    ]
    quic = [one for one in runs.senders(place) if not one.is_tcp]
    return tcp + [(one.name, one, look) for one, look in zip(quic, _QUIC, strict=False)]


def _panel(runs: KuhnRuns, place: str, axes: Axes, name: str) -> None:
    times = np.arange(0, _UNTIL_S[place] + _STEP_S, _STEP_S)
    for _, sender, (colour, dashes) in _drawn(runs, place):
        # The largest file there is: a smaller one is its beginning.
        size = max(one for one in SIZES if runs.transfer(place, sender, one) is not None)
        found = runs.transfer(place, sender, size)
        if found is None:
            continue
        first = found.cell.records[0]
        y = found.curve(times) if name == "data" else rate(first, times, WINDOW_S)
        axes.plot(times, y, color=colour, ls=dashes, lw=1, zorder=3)
    if name == "data":
        axes.set_yscale("log")
        axes.set_ylim(_LEAST_MB, 1.4 * max(SIZES))
        axes.set_yticks([_LEAST_MB, 1, *SIZES])
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axes.set_ylim(0, _HIGHEST_MBPS[place])


def _mark(axes: Axes, known: Objectives) -> None:
    for size, time_s in known.times_s.items():
        axes.plot([time_s], [float(size)], "x", color=BLACK, ms=4, mew=1, zorder=5)


def _keys(runs: KuhnRuns, places: list[str], name: str) -> list[Line2D]:
    looks = {title: look for place in places for title, _, look in _drawn(runs, place)}
    keys = [Line2D([], [], color=colour, ls=dashes, lw=1, label=title)
            for title, (colour, dashes) in looks.items()]  # fmt: skip
    if name == "data":
        keys.append(Line2D([], [], color=BLACK, marker="x", ms=4, ls="", label="objective"))
    return keys
