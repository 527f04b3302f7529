"""Figures of result pages: matrices as heat maps, and how goodput is distributed over pairs.

In the style of `bentpipe.analysis.plots`. Colours of the heat map go from dark to light, so that greyscale
suffices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bentpipe.analysis.cells import Cell, Matrix
from bentpipe.analysis.plots import canvas
from bentpipe.analysis.plots.canvas import BLACK, BLUE, PALE, VERMILLION

MM = 1 / 25.4  # inches
WIDTH_MM = 178  # of a page
_PANEL_MM = 78  # height of a heat map with ten stacks
_ROW_MM, _FRAME_MM = 6.5, 22  # of a distribution: a stack; axis and legend
_ACROSS = 2
_MAP = "cividis"
_DARK = 0.5  # of the map: texts on what is darker are white
_FAR = 3  # times the best pair: a line beyond is left out
_MARK = "x"  # of a pair without a success


@dataclass(frozen=True)
class Line:
    """A reference value, drawn as a line across a distribution."""

    value: float
    label: str
    dashes: str = "-"
    colour: str = BLACK


@contextmanager
def style() -> Iterator[None]:
    """The style of all figures, except that text stays text: thousands of outlines would make large files."""
    with canvas.style(), matplotlib.rc_context({"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"]}):
        yield


@contextmanager
def drawing(
    path: Path, title: str, height_mm: float, width: float = 1.0, dpi: float | None = None
) -> Iterator[Figure]:
    """A new figure, `width` pages wide, that is saved to `path` at the end of the block."""
    with style():
        made = Figure((WIDTH_MM * MM * width, height_mm * MM), layout="constrained", dpi=dpi)
        yield made
        canvas.save(made, path, title)


def legend_above(made: Figure, keys: Sequence[Line2D], columns: int) -> None:
    """Place the legend above all panels."""
    made.legend(handles=keys, loc="outside upper center", ncols=columns, frameon=False)


def panels_of(made: Figure, count: int, across: int, *, share: bool = False) -> list[Axes]:
    """Add `count` panels, at most `across` in a row; `share` gives them the same axes."""
    across = min(across, count)
    grid = made.subplots(-(-count // across), across, squeeze=False, sharex=share, sharey=share)
    panels = list(grid.flat)
    for axes in panels[count:]:
        axes.set_axis_off()
    return panels[:count]


def heat_maps(panels: Sequence[tuple[str, Matrix]], path: Path) -> None:
    """A panel per title and matrix: mean efficiency of each pair in percent, clients down, servers across."""
    across = min(_ACROSS, len(panels))
    height_mm = _PANEL_MM * -(-len(panels) // across)
    with drawing(path, "mean efficiency of every pair", height_mm, across / _ACROSS) as made:
        for axes, (title, matrix) in zip(panels_of(made, len(panels), _ACROSS), panels, strict=True):
            _heat_map(axes, title, matrix)


def _heat_map(axes: Axes, title: str, matrix: Matrix) -> None:
    by_pair = {(cell.key.client, cell.key.server): cell for cell in matrix.cells}
    squares = [[_square(by_pair.get((c, s))) for s in matrix.servers] for c in matrix.clients]
    draw_squares(axes, squares, matrix.clients, matrix.servers)
    axes.set_title(title)
    axes.set_xlabel("server")
    axes.set_ylabel("client")


@dataclass(frozen=True)
class HeatSquare:
    """A square of a heat map: its shade from 0 to 1, NaN for white, and its text."""

    share: float
    text: str


def draw_squares(
    axes: Axes, squares: Sequence[Sequence[HeatSquare]], rows: Sequence[str], columns: Sequence[str]
) -> None:
    """A heat map with named rows, the first one above, and named columns."""
    colours = matplotlib.colormaps[_MAP].with_extremes(bad="white")
    shares = np.ma.masked_invalid([[one.share for one in row] for row in squares])
    axes.pcolormesh(shares, cmap=colours, vmin=0, vmax=1, edgecolors="white", lw=0.5)
    axes.invert_yaxis()
    for y, row in enumerate(squares):
        for x, one in enumerate(row):
            unknown = VERMILLION if np.isnan(one.share) else BLACK
            colour = "white" if one.share < _DARK else unknown
            axes.text(x + 0.5, y + 0.5, one.text, ha="center", va="center", fontsize=5.5, color=colour)
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns)
    for label in axes.get_xticklabels():
        label.set(rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _square(cell: Cell | None) -> HeatSquare:
    """The square of a pair: its mean efficiency in percent."""
    if cell is None:
        return HeatSquare(float("nan"), "")
    mean = cell.efficiency_mean
    if mean is None:
        return HeatSquare(float("nan"), _MARK)
    return HeatSquare(mean, f"{100 * mean:.0f}" + ("!" if cell.failures else ""))


def grids(panels: Sequence[tuple[str, Sequence[Sequence[HeatSquare]]]], rows: Sequence[str],
          columns: Sequence[Sequence[str]], path: Path, title: str) -> None:  # fmt: skip
    """Heat maps beside each other that have their rows in common; `columns` of each."""
    across = min(_ACROSS, len(panels))
    height_mm = (_ROW_MM * len(rows) * 0.65 + _FRAME_MM) * -(-len(panels) // across)
    with drawing(path, title, height_mm, 1 if across > 1 else 0.7) as made:
        for place, axes in enumerate(panels_of(made, len(panels), _ACROSS)):
            draw_squares(axes, panels[place][1], rows, columns[place])
            axes.set_title(panels[place][0])
            if place % across:
                axes.set_yticklabels([])


def distribution(matrix: Matrix, lines: Sequence[Line], path: Path) -> None:
    """The mean goodput of every pair, twice: in the row of its server above, in that of its client below."""
    stacks = sorted({*matrix.clients, *matrix.servers}, key=lambda name: (_mean(matrix, name), name))
    lines = _in_view(matrix, lines)
    with drawing(
        path, f"goodput of pairs over {matrix.key.scenario}", _FRAME_MM + _ROW_MM * len(stacks), 0.7
    ) as made:
        axes = made.subplots()
        for row, stack in enumerate(stacks):
            axes.axhline(row, color=PALE, lw=0.4, zorder=1)
            _strip(axes, row + 0.17, matrix.column(stack), VERMILLION, "o")
            _strip(axes, row - 0.17, matrix.row(stack), BLUE, "D")
        for line in lines:
            axes.axvline(line.value / 1e6, color=line.colour, lw=0.8, ls=line.dashes, zorder=2)
        axes.set_yticks(range(len(stacks)), stacks)
        axes.set_ylim(-0.6, len(stacks) - 0.4)
        axes.set_xlim(0, 1.03 * max([*_goodputs(matrix.cells), *(line.value / 1e6 for line in lines)]))
        axes.set_xlabel("mean goodput of a pair (Mbit/s)")
        axes.tick_params(axis="y", length=0)
        legend_above(made, _keys(lines), 2)


@dataclass(frozen=True)
class Strip:
    """A row of dots: its name, their values, and their mean with its interval, empty if it has none."""

    name: str
    values: Sequence[float]
    mean: float
    interval: Sequence[float] = ()


def strips(rows: Sequence[Strip], lines: Sequence[Line], margin: float, unit: str, path: Path) -> None:
    """Draw the rows, the first one above. Around the last line a band of the values that are equal to it
    within the margin, a share.
    """
    with drawing(path, unit, _FRAME_MM + _ROW_MM * len(rows), 0.7) as made:
        axes = made.subplots()
        middle = lines[-1].value
        band = middle / (1 + margin), middle * (1 + margin)
        axes.axvspan(*band, color=PALE, alpha=0.5, lw=0, zorder=0)
        for place, row in enumerate(reversed(rows)):
            # Dots of equal values lie beside each other: every third on a separate line.
            heights = [place + 0.12 * (number % 3 - 1) for number in range(len(row.values))]
            axes.plot(row.values, heights, "o", ms=2, mew=0, color=BLUE, alpha=0.35, zorder=4)
            axes.plot(row.interval, [place] * len(row.interval), color=VERMILLION, lw=2.2, zorder=5)
            axes.plot([row.mean], [place], "|", ms=11, mew=1.2, color=VERMILLION, zorder=5)
        for line in lines:
            axes.axvline(line.value, color=line.colour, lw=0.8, ls=line.dashes, zorder=2)
        axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        everything = [value for row in rows for value in row.values]
        axes.set_xlim(0.95 * min(everything), 1.02 * max(everything))
        axes.set_xlabel(unit)
        axes.tick_params(axis="y", length=0)
        keys = [
            Line2D([], [], color=BLUE, marker="o", ms=3, ls="", label="one dot per seed"),
            Line2D([], [], color=VERMILLION, marker="|", ms=8, mew=1.2, lw=2.2, label="mean, with interval"),
            *(Line2D([], [], color=one.colour, ls=one.dashes, lw=0.8, label=one.label) for one in lines),
            Line2D([], [], color=PALE, lw=5, label=f"equal within {100 * margin:g} %"),
        ]
        legend_above(made, keys, 2)


def _mean(matrix: Matrix, name: str) -> float:
    """The mean over a stack's pairs as a server; 0 if none succeeded."""
    known = _goodputs(matrix.column(name))
    return float(np.mean(known)) if known else 0.0


def _goodputs(cells: Sequence[Cell]) -> list[float]:
    """Mean goodputs in Mbit/s, of the cells that have one."""
    return [cell.goodput_mean_bps / 1e6 for cell in cells if cell.goodput_mean_bps is not None]


def _in_view(matrix: Matrix, lines: Sequence[Line]) -> list[Line]:
    """The lines that do not squeeze all dots to the left."""
    farthest = _FAR * max(_goodputs(matrix.cells), default=float("inf"))
    return [line for line in lines if line.value / 1e6 <= farthest]


def _strip(axes: Axes, y: float, cells: Sequence[Cell], colour: str, shape: str) -> None:
    """A dot per pair, and a bar at their median."""
    known = _goodputs(cells)
    if known:
        axes.plot(known, [y] * len(known), shape, ms=2.4, mew=0, color=colour, alpha=0.75, zorder=4)
        axes.plot([np.median(known)], [y], "|", ms=6, mew=1.0, color=BLACK, zorder=5)


def _keys(lines: Sequence[Line]) -> list[Line2D]:
    dots = [
        Line2D([], [], color=VERMILLION, marker="o", ms=3, ls="", label="as server, one dot per client"),
        Line2D([], [], color=BLUE, marker="D", ms=3, ls="", label="as client, one dot per server"),
        Line2D([], [], color=BLACK, marker="|", ms=6, ls="", label="median"),
    ]
    marks = [Line2D([], [], color=line.colour, ls=line.dashes, lw=0.8, label=line.label) for line in lines]
    return dots + marks
