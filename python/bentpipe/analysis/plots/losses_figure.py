"""The figure of losses: lengths of bursts and of gaps against what models have, and losses over time.

Lengths are shown as the share of bursts, or gaps, that are at least so long, both axes logarithmic: of the
simplified Gilbert model that share is geometric.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from bentpipe.analysis.losses import Direction, DirectionLosses, Lengths, Losses
from bentpipe.analysis.plots import canvas
from bentpipe.analysis.plots.canvas import BLUE, GREEN, VERMILLION, FigureStyle
from bentpipe.analysis.plots.table import Floats

_WIDTH_MM, _HEIGHT_MM = 178, 55  # of a page, and for each direction
_MM = 1 / 25.4
_POINTS = 200


def draw(found: Losses, directions: Sequence[Direction]) -> Figure:
    """A row for each direction. To be called, and the figure saved, in the context `canvas.style()`."""
    look = FigureStyle(_WIDTH_MM, _HEIGHT_MM * len(directions))
    made = Figure((look.width_mm * _MM, look.height_mm * _MM), layout="constrained")
    grid = made.subplots(len(directions), 3, squeeze=False)
    for row, direction in zip(grid, directions, strict=True):
        one = found.of(direction)
        fit = one.simplified_gilbert
        _lengths(row[0], one.bursts, None if fit is None else fit.p_good_given_bad.value, one)
        _lengths(row[1], one.gaps, None if fit is None else fit.p_bad_given_good.value, one)
        _over_time(row[2], one)
        row[0].set_ylabel(f"{direction.capitalize()}\nshare at least as long")
    for axes, label in zip(grid[-1], ("Burst (packets)", "Gap (packets)", "Time (s)"), strict=True):
        axes.set_xlabel(label)
    handles = [
        canvas.Mark("measured", BLUE, "o", 2.5),
        canvas.Mark("simplified Gilbert", VERMILLION, "", dashes="--"),
        canvas.Mark("as if independent", GREEN, "", dashes=":"),
    ]
    canvas.legend_of(made, handles)
    return made


def _lengths(axes: Axes, found: Lengths | None, end: float | None, one: DirectionLosses) -> None:
    if found is None or one.rate is None:
        _nothing(axes)
        return
    lengths = np.array([it.length for it in found.distribution], np.float64)
    counts = np.array([it.count for it in found.distribution], np.float64)
    at_least = counts[::-1].cumsum()[::-1] / counts.sum()
    axes.plot(lengths, at_least, "o", color=BLUE, ms=2.5, zorder=4, clip_on=False)
    x = np.unique(np.geomspace(1, max(lengths[-1], 2), _POINTS).round())
    is_burst = found is one.bursts
    alone = 1 - one.rate.value if is_burst else one.rate.value
    for ends, colour, dashes in ((end, VERMILLION, "--"), (alone, GREEN, ":")):
        if ends is not None and 0 < ends < 1:
            axes.plot(x, _geometric(x, ends), color=colour, ls=dashes, zorder=3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlim(0.9, max(float(lengths[-1]), 2.0) * 1.2)
    axes.set_ylim(min(0.5 / counts.sum(), 0.08), 1.2)


def _geometric(length: Floats, end: float) -> Floats:
    """The share of runs that last at least so long, where each packet ends one with this probability."""
    return np.asarray((1 - end) ** (length - 1), np.float64)


def _over_time(axes: Axes, one: DirectionLosses) -> None:
    if not one.over_time or not one.losses:
        _nothing(axes)
        return
    start = np.array([it.start_s for it in one.over_time], np.float64)
    lost = np.array([it.losses for it in one.over_time], np.float64)
    axes.step(start, lost, where="post", color=BLUE)
    axes.set_ylabel("Lost packets")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))


def _nothing(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no losses", transform=axes.transAxes, ha="center", va="center")
    axes.set_xticks([])
    axes.set_yticks([])
