"""The figure for whoever must choose: what each treatment does to files over each path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.plots.canvas import BLACK, BLUE, GREY, PALE, VERMILLION
from bentpipe.plan.treatments import DIRECT
from bentpipe.study import figures
from bentpipe.study.markdown import bytes_as

from . import effects
from .effects import EQUAL, FASTER, OPEN, PATHS, SLOWER, Effect, Setting

_PANEL_MM = 42
_ACROSS = 2
_COLOURS = {FASTER: BLUE, SLOWER: VERMILLION, EQUAL: BLACK, OPEN: GREY}
_SHAPES = ("o", "s", "D", "^")  # by size, the smallest first
_TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5)


def draw(
    grouped: Mapping[Setting, Mapping[str, Cell]],
    found: Mapping[tuple[Setting, str], Effect],
    sender: str,
    path: Path,
) -> None:
    """Draw a panel for each path and loss, with a row for each treatment and a mark for each size."""
    mine = {key: one for key, one in found.items() if key[0].sender == sender}
    panels = [
        (name, loss)
        for name in PATHS
        for loss in ("0 %", "1 %")
        if any((one.path, one.loss) == (name, loss) for one, _ in mine)
    ]
    rows = [one for one in effects.treatments_of(grouped.values()) if one not in (DIRECT, "tcp-pep")]
    sizes = sorted({count for one, _ in mine if (count := effects.size(one.workload))})
    height = _PANEL_MM * -(-len(panels) // _ACROSS) + 10
    with figures.drawing(path, "times of files behind treatments of the satellite hop", height) as made:
        axes_of = figures.panels_of(made, len(panels), _ACROSS)
        for number, (axes, (name, loss)) in enumerate(zip(axes_of, panels, strict=True)):
            here = {key: one for key, one in mine.items() if (key[0].path, key[0].loss) == (name, loss)}
            _panel(axes, here, rows, sizes)
            axes.set_title(PATHS[name] + ("" if loss == "0 %" else f", {loss} of loss"))
            if number % _ACROSS:
                axes.set_yticklabels([])
            if number >= len(panels) - _ACROSS:
                axes.set_xlabel("times as long as direct")
        figures.legend_above(made, _keys(sizes), 4)


def _panel(
    axes: Axes, found: Mapping[tuple[Setting, str], Effect], rows: list[str], sizes: list[int]
) -> None:
    axes.axvspan(1 / (1 + effects.SAME), 1 + effects.SAME, color=PALE, alpha=0.6, lw=0, zorder=0)
    for (where, name), one in found.items():
        count = effects.size(where.workload)
        if count is None or name not in rows:
            continue
        place = sizes.index(count)
        y = rows.index(name) + 0.18 * (place - (len(sizes) - 1) / 2)
        colour = _COLOURS[one.verdict]
        low, high = one.ratio.low, one.ratio.high
        if low is not None and high is not None:
            axes.plot([low, high], [y, y], color=colour, lw=0.8, zorder=3)
        axes.plot([one.ratio.value], [y], _SHAPES[place], ms=2.8, mew=0, color=colour, zorder=4)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(_TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlim(0.03, 6)
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.set_yticks(np.arange(len(rows)), rows)
    axes.tick_params(axis="y", length=0)
    for border in range(1, len(rows)):
        axes.axhline(border - 0.5, color=PALE, lw=0.4, zorder=1)


def _keys(sizes: list[int]) -> list[Line2D]:
    shapes = [
        Line2D([], [], color=BLACK, marker=shape, ms=3, ls="", label=bytes_as(count))
        for shape, count in zip(_SHAPES, sizes, strict=False)
    ]
    colours = [
        Line2D(
            [], [], color=colour, lw=2, label={OPEN: "cannot tell", EQUAL: "equal within 5 %"}.get(word, word)
        )
        for word, colour in _COLOURS.items()
    ]
    return [*shapes, *colours]
