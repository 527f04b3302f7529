"""Forest plots: what was measured, with its interval, beside what was published, in the verdict's colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from bentpipe.analysis.plots.canvas import BLACK, BLUE, GREY, PALE, SKY, VERMILLION
from bentpipe.study import figures
from bentpipe.study.claims import AGREES, CANNOT_TELL, CONTRADICTS, SAME_DIRECTION, Claim, EqualMeans

_ROW_MM, _FRAME_MM = 5.5, 20
_BEYOND = 4  # times the farthest value, where the frame is: intervals that go on are cut there
_NARROW = 8  # times: an axis that spans less has more ticks
_TICKS, _FINE_TICKS = (1, 2, 5), (1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
# A shape beside the colour, so that greyscale suffices.
_MARKS = {AGREES: (BLUE, "o"), SAME_DIRECTION: (SKY, "s"), CONTRADICTS: (VERMILLION, "X"),
          CANNOT_TELL: (GREY, "d")}  # fmt: skip


Drawn = TypeVar("Drawn", bound=Claim | EqualMeans)


def drawable(claims: Sequence[Drawn]) -> list[Drawn]:
    """The claims that a forest plot can show: those that have a label, a value and a verdict."""
    return [one for one in claims if one.label and one.measured is not None and one.verdict in _MARKS]


def draw(
    claims: Sequence[Drawn],
    path: Path,
    unit: str,
    title: str,
    *,
    border: float | None = 1.0,
    margin: float = 0.0,
) -> None:
    """Draw a row for each claim, the first one above; over a logarithmic axis if all values are positive.
    `border` is the value without an effect; within `margin` of it values count as equal.
    """
    shown = drawable(claims)
    ends = [value for one in shown for value in _ends(one)]
    is_logarithmic = bool(ends) and min(ends) > 0
    with figures.drawing(path, title, _FRAME_MM + _ROW_MM * len(shown), 0.85) as made:
        axes = made.subplots()
        if border is not None:
            axes.axvline(border, color=BLACK, lw=0.6, zorder=1)
            if margin:
                axes.axvspan(
                    border / (1 + margin), border * (1 + margin), color=PALE, alpha=0.6, lw=0, zorder=0
                )
        for row, one in enumerate(shown):
            axes.axhline(row, color=PALE, lw=0.3, zorder=0)
            _row(axes, row, one)
        axes.margins(x=0.06)
        if is_logarithmic:
            _logarithmic(axes, ends, [value for one in shown for value in _values(one)])
        axes.set_yticks(range(len(shown)), [one.label for one in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel(unit)
        axes.tick_params(axis="y", length=0)
        figures.legend_above(made, _keys(shown), 3)


def _logarithmic(axes: Axes, ends: Sequence[float], values: Sequence[float]) -> None:
    """A logarithmic axis over all ends of intervals that are not far beyond all values."""
    least, most = max(min(ends), min(values) / _BEYOND), min(max(ends), max(values) * _BEYOND)
    margin = max((most / least) ** 0.05, 1.02)
    axes.set_xscale("log")
    axes.set_xlim(least / margin, most * margin)
    axes.xaxis.set_major_locator(LogLocator(subs=_FINE_TICKS if most < _NARROW * least else _TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _values(one: Claim | EqualMeans) -> list[float]:
    """What was measured and what was published."""
    known = [] if one.measured is None else [one.measured.value]
    values = [*known, one.published.low, one.published.high]
    return [value for value in values if value is not None and math.isfinite(value)]


def _ends(one: Claim | EqualMeans) -> list[float]:
    """These, and the ends of the interval."""
    mine = one.measured
    ends = [] if mine is None else [mine.low, mine.high]
    return [*_values(one), *(end for end in ends if end is not None and math.isfinite(end))]


def _row(axes: Axes, row: int, one: Claim | EqualMeans) -> None:
    colour, shape = _MARKS[one.verdict]
    mine = one.measured
    if mine is not None:
        low, high = mine.low, mine.high
        if low is not None and high is not None:
            ends = [low, high if math.isfinite(high) else 2 * _BEYOND * mine.value]
            axes.plot(ends, [row, row], color=colour, lw=1.2, zorder=3)
        axes.plot([mine.value], [row], shape, ms=4, mew=0, color=colour, zorder=4)
    low, high = one.published.low, one.published.high
    if low is not None and high is not None and math.isfinite(low + high):
        axes.plot([(low + high) / 2], [row], "D", ms=4.5, mew=0.8, mfc="none", mec=BLACK, zorder=5)


def _keys(shown: Sequence[Claim | EqualMeans]) -> list[Line2D]:
    here = {one.verdict for one in shown}
    keys = [
        Line2D([], [], color=colour, marker=shape, ms=4, mew=0, lw=1.2, label=word)
        for word, (colour, shape) in _MARKS.items()
        if word in here
    ]
    if any(one.published.low is not None for one in shown):
        keys.append(
            Line2D([], [], marker="D", ms=4.5, mew=0.8, mfc="none", mec=BLACK, ls="", label="published")
        )
    return keys
