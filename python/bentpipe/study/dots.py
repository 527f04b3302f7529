"""Small multiples of dots: a panel for each path, a row for each sender, a dot for each measured value with
its interval; one unit, and the same axis throughout. Panels stand below each other, so that a narrow screen
shows them as large as a wide one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bentpipe.analysis.plots.canvas import BLACK, PALE
from bentpipe.study import figures
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.curves import look

_WIDTH = 0.68  # of a page: what a telephone shows without shrinking it much
_ROW_MM, _TITLE_MM, _FRAME_MM = 4.6, 9, 16
_SPREAD = 0.56  # of a row, over which the dots of its series lie
_SHAPES = "os^Dv*P"  # beside the colour, so that greyscale suffices


@dataclass(frozen=True)
class DotRow:
    """A row of a panel: its name, and a value for each series that has one."""

    name: str
    values: Mapping[str, MeasuredValue]


@dataclass(frozen=True)
class DotPanel:
    """A panel: its title and its rows, the first one above."""

    title: str
    rows: Sequence[DotRow]


def draw(
    panels: Sequence[DotPanel],
    path: Path,
    unit: str,
    title: str,
    *,
    limits: tuple[float, float] | None = None,
    border: float | None = None,
) -> None:
    """Draw the panels below each other. `limits` are those of the axis, by default those of the values;
    `border` is a value at which all of them have a line.
    """
    series = list(dict.fromkeys(name for panel in panels for row in panel.rows for name in row.values))
    rows = sum(len(panel.rows) for panel in panels)
    height_mm = _FRAME_MM + _TITLE_MM * len(panels) + _ROW_MM * rows
    with figures.drawing(path, title, height_mm, _WIDTH) as made:
        shares = [len(panel.rows) + 1 for panel in panels]
        grid = made.subplots(len(panels), 1, squeeze=False, sharex=True, height_ratios=shares)
        for panel, axes in zip(panels, grid.flat, strict=True):
            axes.set_title(panel.title)
            if border is not None:
                axes.axvline(border, color=BLACK, lw=0.6, zorder=1)
            for number, row in enumerate(panel.rows):
                axes.axhline(number, color=PALE, lw=0.3, zorder=0)
                _dots(axes, number, row, series)
            axes.set_yticks(range(len(panel.rows)), [row.name for row in panel.rows])
            axes.set_ylim(len(panel.rows) - 0.4, -0.6)
            axes.tick_params(axis="y", length=0)
            axes.margins(x=0.06)
        if limits is not None:
            grid.flat[-1].set_xlim(*limits)
        grid.flat[-1].set_xlabel(unit)
        if len(series) > 1:
            figures.legend_above(made, list(_keys(series)), 2)


def _dots(axes: Axes, number: int, row: DotRow, series: Sequence[str]) -> None:
    for place, name in enumerate(series):
        one = row.values.get(name)
        if one is None or not math.isfinite(one.value):
            continue
        y = number + (_SPREAD * (place / (len(series) - 1) - 0.5) if len(series) > 1 else 0.0)
        colour, _ = look(place)
        if one.low is not None and one.high is not None and math.isfinite(one.low + one.high):
            axes.plot([one.low, one.high], [y, y], color=colour, lw=1.0, zorder=3)
        axes.plot([one.value], [y], _SHAPES[place % len(_SHAPES)], ms=3, mew=0, color=colour, zorder=4)


def _keys(series: Sequence[str]) -> Iterator[Line2D]:
    for place, name in enumerate(series):
        shape = _SHAPES[place % len(_SHAPES)]
        yield Line2D([], [], color=look(place)[0], marker=shape, ms=4, mew=0, lw=1.0, label=name)
