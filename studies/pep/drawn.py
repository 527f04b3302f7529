"""The figures of the page on proxies: a row of panels per scenario, a panel per loss ratio."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from bentpipe.analysis.plots import canvas
from bentpipe.analysis.plots.canvas import BLUE, GREY, VERMILLION
from bentpipe.study.figures import MM, WIDTH_MM, style

from .runs import Arrivals, LossyPath, PepRun, ratio

_ROW_MM, _LEGEND_MM = 42, 8
_TICKS = (0.5, 1, 2, 5, 10, 20, 50)
_HIGHEST, _LOWEST = 50, 0.4  # of the ratio
NAMES = {
    "ratio": "Bytes received with proxies, as a multiple of those without",
    "goodput": "Goodput over time",
}


def draw(study: PepRun, chain: str, folder: Path) -> dict[str, Path]:
    """Draw both: name → file."""
    files = {name: folder / f"pep-{name}.svg" for name in NAMES}
    _panels(study, chain, files["ratio"], _ratio, "bytes, with / without proxies", [])
    keys = [
        Line2D([], [], color=BLUE, lw=1, label="direct"),
        Line2D([], [], color=VERMILLION, lw=1, ls="--", label="with proxies"),
        Line2D([], [], color=GREY, lw=0.8, ls=":", label="rate of the link"),
    ]
    _panels(study, chain, files["goodput"], _goodput, "goodput (Mbit/s)", keys)
    return files


_Panel = Callable[[Axes, tuple[Arrivals, Arrivals], float], None]


def _panels(study: PepRun, chain: str, path: Path, panel: _Panel, label: str, keys: list[Line2D]) -> None:
    rows = [study.of_scenario(name) for name in study.scenarios]
    across = max(map(len, rows))
    with style():
        height = _ROW_MM * len(rows) + (_LEGEND_MM if keys else 0)
        made = Figure((WIDTH_MM * MM, height * MM), layout="constrained")
        grid = made.subplots(len(rows), across, squeeze=False, sharex=True, sharey=True)
        for down, roads in enumerate(rows):
            for place, axes in enumerate(grid[down]):
                _panel(study, roads[place] if place < len(roads) else None, chain, axes, panel)
            grid[down][0].set_ylabel(label)
        for axes in grid[-1]:
            axes.set_xlabel("time (s)")
        if keys:
            made.legend(handles=keys, loc="outside upper center", ncols=len(keys), frameon=False)
        canvas.save(made, path, label)


def _panel(study: PepRun, road: LossyPath | None, chain: str, axes: Axes, panel: _Panel) -> None:
    both = None if road is None else study.pair(road, chain)
    if road is None or both is None:
        axes.set_axis_off()
        return
    axes.set_title(f"{road.scenario}, {road.loss} loss")
    axes.set_xlim(0, study.until_s)
    panel(axes, both, study.rate_bps(road))


def _ratio(axes: Axes, both: tuple[Arrivals, Arrivals], _: float) -> None:
    proxied, direct = both
    axes.axhline(1, color=GREY, lw=0.7, ls="--", zorder=1)
    shown = np.clip(ratio(proxied, direct), _LOWEST, _HIGHEST)
    axes.plot(direct.times, shown, color=VERMILLION, lw=1, zorder=3)
    axes.set_yscale("log")
    axes.set_ylim(_LOWEST, _HIGHEST)
    axes.set_yticks(_TICKS)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _goodput(axes: Axes, both: tuple[Arrivals, Arrivals], rate_bps: float) -> None:
    axes.axhline(rate_bps / 1e6, color=GREY, lw=0.8, ls=":", zorder=1)
    for one, colour, dashes in zip(both, (VERMILLION, BLUE), ("--", "-"), strict=True):
        rates = one.rates / 1e6
        low, high = np.quantile(rates, (0.25, 0.75), axis=0)
        axes.fill_between(one.times, low, high, color=colour, alpha=0.15, lw=0, zorder=2)
        axes.plot(one.times, rates.mean(axis=0), color=colour, ls=dashes, lw=1, zorder=3)
    axes.set_ylim(0, 1.08 * rate_bps / 1e6)
