"""The elements that all figures share: sizes, colours, marks, legends, and how they are written to a file.

Figures are made for papers: as wide as a column, fonts embedded in a form that printers accept (type 42), the
same bytes for the same packets. Colours are those of Okabe and Ito (Color Universal Design, 2008), which
people with colour-blindness tell apart; each mark also has a shape or dashes of its own, so greyscale
suffices. Marks by the thousand are drawn as an image within the vector file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from bentpipe.analysis.plots.table import Floats, Ints

FORMATS = ("pdf", "png", "svg")

BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, BLACK, GREY, PALE = "#9A4F80", "#56B4E9", "#000000", "#767676", "#C8C8C8"

_MM = 1 / 25.4  # inches
_LEGEND_MM = 28  # width of an entry of the legend, at least
_LETTER_MM, _MARK_MM = 1.2, 7.0  # in it
_MANY = 2000  # marks beyond which they become an image
_FEW, _LARGER = 300, 2  # fewer dots than this are drawn larger, by this factor
_DPI = 600
_STYLE: Any = {
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "axes.linewidth": 0.5,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.xmargin": 0,
    "lines.linewidth": 0.8,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "bentpipe",
    "savefig.dpi": _DPI,
    "text.parse_math": False,  # a file's name may have a dollar sign
}


@dataclass(frozen=True)
class Mark:
    """The appearance of a series."""

    label: str  # of the legend; "" for none
    colour: str
    shape: str = "o"
    size: float = 1.0  # points
    dashes: str = "-"
    width: float = 0.8  # points
    above: int = 3  # drawn over marks with a lower number


@dataclass(frozen=True)
class FigureStyle:
    """The style of a figure: which parts it shows, and its size."""

    width_mm: float = 85
    height_mm: float = 60
    from_s: float | None = None
    to_s: float | None = None
    title: bool = False
    others: bool = True


@dataclass
class Panel:
    """A pair of axes for the times from `start_s` to `end_s`, with y fitted to the marks in between."""

    axes: Axes
    start_s: float
    end_s: float
    marks: dict[str, Mark] = field(default_factory=dict)  # of the legend: those that were used
    empty: bool = True  # no packet is in it
    _top: float = 0.0
    _bottom: float = float("inf")

    def dots(self, time_s: Floats, y: Floats | Ints, mark: Mark) -> None:
        """A mark per entry."""
        keep = (time_s >= self.start_s) & (time_s <= self.end_s)
        if not keep.any():
            return
        self.empty = False
        self._note(y[keep], mark)
        dots = self.axes.scatter(
            time_s[keep],
            y[keep],
            s=_diameter(mark, int(np.count_nonzero(keep))) ** 2,
            c=mark.colour,
            marker=mark.shape,
            linewidths=_edge(mark),
            zorder=mark.above,
            clip_on=True,
        )
        dots.set_rasterized(bool(np.count_nonzero(keep) > _MANY))

    def steps(
        self, time_s: Floats, y: Floats | Ints, mark: Mark, fit: bool = True, holds: bool = True
    ) -> None:
        """A value that holds from its time until the next; the last one if it `holds`. With `fit`, the axis
        reaches as far as it does.
        """
        if len(time_s) == 0 or time_s[0] > self.end_s:
            return
        first = max(int(np.searchsorted(time_s, self.start_s, "right")) - 1, 0)
        behind = int(np.searchsorted(time_s, self.end_s, "right"))
        x, values = time_s[first:behind], y[first:behind]
        if holds or behind < len(time_s):
            x, values = np.append(x, self.end_s), np.append(values, values[-1])
        self._note(values if fit else values[:0], mark)
        (line,) = self.axes.step(
            x, values, where="post", color=mark.colour, ls=mark.dashes, lw=mark.width, zorder=mark.above
        )
        line.set_rasterized(len(x) > _MANY)

    def line(self, time_s: Sequence[float] | Floats, y: Sequence[float] | Floats, mark: Mark) -> None:
        """A line that may extend beyond the figure."""
        self.marks[mark.label] = mark
        self.axes.plot(time_s, y, color=mark.colour, ls=mark.dashes, lw=mark.width, zorder=mark.above)

    def level(self, y: float, mark: Mark) -> None:
        """A horizontal line, always in view."""
        self._note(np.array([y]), mark)
        self.axes.axhline(y, color=mark.colour, ls=mark.dashes, lw=mark.width, zorder=mark.above)

    def columns(self, time_s: Floats, low: Floats | Ints, high: Floats | Ints, mark: Mark) -> None:
        """A vertical stroke per entry, from half a unit below `low` to half a unit above `high`."""
        keep = (time_s >= self.start_s) & (time_s <= self.end_s)
        if not keep.any():
            return
        self.empty = False
        self._note(np.concatenate([low[keep], high[keep]]), mark)
        x = time_s[keep]
        ends = [np.stack([x, y[keep] + half], axis=1) for y, half in ((low, -0.5), (high, 0.5))]
        drawn = LineCollection(
            list(np.stack(ends, axis=1)),
            colors=mark.colour,
            linewidths=mark.width,
            capstyle="projecting",  # so that the shortest can be seen
            zorder=mark.above,
        )
        drawn.set_rasterized(len(x) > _MANY)
        self.axes.add_collection(drawn)

    def event(self, time_s: float, text: str, low: bool) -> None:
        """A thin vertical line with a text along it, at the lower or the upper end."""
        if not self.start_s <= time_s <= self.end_s:
            return
        self.axes.axvline(time_s, color=GREY, lw=0.4, ls=(0, (1, 2)), zorder=1)
        self.axes.annotate(
            text,
            (time_s, 0.02 if low else 0.98),
            xycoords=("data", "axes fraction"),
            xytext=(-1 if low else 1, 0),
            textcoords="offset points",
            rotation=90,
            ha="right" if low else "left",
            va="bottom" if low else "top",
            fontsize=5.5,
            color=GREY,
            zorder=5,
        )

    def finish(self, y_label: str, from_zero: bool = True, counts: bool = False) -> None:
        """Fit the axes to what was drawn, and name y. What `counts` has whole numbers only."""
        self.axes.set_xlim(self.start_s, self.end_s)
        self.axes.set_ylabel(y_label)
        if self._bottom > self._top:  # nothing in view
            self.axes.set_yticks([])
            return
        whole = from_zero and self.start_s <= 0
        low = 0.0 if whole else self._bottom
        margin = 0.05 * ((self._top - low) or abs(self._top) or 1.0)
        self.axes.set_ylim(low - (0 if whole else margin), self._top + margin)
        self.axes.yaxis.set_major_locator(MaxNLocator(5, min_n_ticks=2, integer=counts))

    def finish_bytes(self, y_label: str) -> None:
        """As `finish`, where y counts bytes: shown in kB or MB."""
        size, unit = (1e6, "MB") if self._top >= 1e6 else (1e3, "kB")
        self.finish(f"{y_label} ({unit})")
        self.axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / size:g}"))

    def _note(self, y: Floats | Ints, mark: Mark) -> None:
        if mark.label:
            self.marks[mark.label] = mark
        if len(y):
            self._top = max(self._top, float(np.max(y)))
            self._bottom = min(self._bottom, float(np.min(y)))


def _diameter(mark: Mark, count: int) -> float:
    """The diameter in points."""
    return mark.size * (_LARGER if mark.shape == "o" and count < _FEW else 1)


def _edge(mark: Mark) -> float:
    """Shapes made of lines need a width; filled ones are without an edge."""
    return mark.width if mark.shape in ("x", "+", "|") else 0


def figure(look: FigureStyle, heights: Sequence[float] = (1,)) -> tuple[Figure, list[Axes]]:
    """An empty figure with axes above one another that share the axis of time."""
    made = Figure((look.width_mm * _MM, look.height_mm * _MM), layout="constrained")
    grid = made.subplots(
        len(heights), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": list(heights)}
    )
    axes: list[Axes] = list(grid[:, 0])
    axes[-1].xaxis.set_major_locator(MaxNLocator(6))
    return made, axes


def legend(made: Figure, panels: Iterable[Panel]) -> None:
    """One legend for all panels, above them."""
    marks: dict[str, Mark] = {}
    for panel in panels:
        marks |= panel.marks
    legend_of(made, list(marks.values()))


def legend_of(made: Figure, marks: Sequence[Mark]) -> None:
    """A legend of these marks, above all axes."""
    handles = [_handle(mark) for mark in marks]
    longest = max((len(mark.label) for mark in marks), default=0)
    entry_mm = max(_LEGEND_MM, _MARK_MM + _LETTER_MM * longest)
    columns = max(int(made.get_figwidth() / (entry_mm * _MM)), 1)
    rows = -(-len(handles) // columns)
    if len(handles) > 1:
        made.legend(
            handles=handles,
            loc="outside upper center",
            ncols=-(-len(handles) // rows),
            frameon=False,
            handlelength=1.6,
            columnspacing=1.2,
            handletextpad=0.5,
            borderpad=0,
        )


def _handle(mark: Mark) -> Line2D:
    if mark.dashes != "" and mark.shape == "":
        return Line2D([], [], color=mark.colour, ls=mark.dashes, lw=max(mark.width, 0.8), label=mark.label)
    size = max(mark.size, 2.5)
    return Line2D(
        [], [], color=mark.colour, marker=mark.shape, ms=size, ls="", mew=_edge(mark), label=mark.label
    )


def style() -> Any:
    """The context in which figures are drawn and written."""
    return matplotlib.rc_context(_STYLE)


def save(made: Figure, path: Path, title: str) -> None:
    """Write a figure; the ending of `path` is one of FORMATS. OSError if it cannot be written."""
    kind = path.suffix[1:].lower()
    metadata: dict[str, dict[str, str | None]] = {
        "pdf": {"Title": title, "Creator": "bentpipe plot", "CreationDate": None},
        "svg": {"Title": title, "Creator": "bentpipe plot", "Date": None},
        "png": {"Title": title},
    }
    partial = path.with_name(f".{path.name}.partial")
    try:
        made.savefig(partial, format=kind, metadata=metadata[kind])
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
