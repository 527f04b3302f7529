"""Figures of result pages with lines: distribution functions, and medians with their quartiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bentpipe.analysis.plots.canvas import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION
from bentpipe.study.figures import MM, Line, drawing, legend_above, panels_of
from bentpipe.study.quantiles import quantile

_LOOKS = [
    (BLUE, "-"),
    (VERMILLION, "--"),
    (GREEN, "-."),
    (ORANGE, ":"),
    (PURPLE, (0, (5, 1, 1, 1, 1, 1))),
    (SKY, (0, (1, 1))),
    (BLACK, (0, (8, 2))),
]
_HEIGHT_MM = 62
_ACROSS = 3
_LEGEND_MM = 8
_MARK_MM, _LETTER_MM = 8.0, 1.15  # of the legend
_DOTS = "os^Dv"
_MANY = 2000  # dots beyond which they become an image


@dataclass(frozen=True)
class Distribution:
    """The distribution of a value over all trials. Its number determines colour and dashes."""

    name: str
    values: Sequence[float]
    number: int = 0


def look(number: int) -> tuple[str, object]:
    """The colour and dashes of a series by its number."""
    return _LOOKS[number % len(_LOOKS)]


def distributions(
    panels: Sequence[tuple[str, Sequence[Distribution]]],
    unit: str,
    path: Path,
    lines: Sequence[Line] = (),
    limits: tuple[float, float] | None = None,
) -> None:
    """A panel per title with the distribution function of every series. A curve ends below 1 where values are
    infinite, and begins above 0 where they are infinitely small.
    """
    across = min(_ACROSS, len(panels))
    span = limits or _span(
        [*(one.values for _, series in panels for one in series), [x.value for x in lines]]
    )
    height_mm = _HEIGHT_MM * -(-len(panels) // across) + _LEGEND_MM
    with drawing(path, unit, height_mm, 1 if across > 1 else 0.6) as made:
        for place, axes in enumerate(panels_of(made, len(panels), _ACROSS, share=True)):
            axes.set_title(panels[place][0])
            for one in panels[place][1]:
                _distribution(axes, one, span)
            for line in lines:
                axes.axvline(line.value, color=line.colour, ls=line.dashes, lw=0.8, zorder=2)
            axes.set(xlim=span, ylim=(0, 1.01))
            if place >= len(panels) - across:
                axes.set_xlabel(unit)
                axes.tick_params(labelbottom=True)
            if place % across == 0:
                axes.set_ylabel("share of runs")
        _legend(made, [one for _, series in panels for one in series], lines)


def _span(values: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The range of the finite values, with a margin on both sides."""
    known = [value for some in values for value in some if math.isfinite(value)] or [0.0]
    margin = 0.04 * (max(known) - min(known)) or 1.0
    return min(known) - margin, max(known) + margin


def _distribution(axes: Axes, series: Distribution, span: tuple[float, float]) -> None:
    known = sorted(value for value in series.values if math.isfinite(value))
    below = sum(value == -math.inf for value in series.values)
    if not series.values:
        return
    heights = (below + np.arange(len(known) + 1)) / len(series.values)
    colour, dashes = look(series.number)
    x, y = [span[0], *known, span[1]], [*heights, heights[-1]]
    axes.step(x, y, where="post", color=colour, ls=dashes, lw=1, zorder=3)


def _legend(made: Figure, drawn: Sequence[Distribution | MeanCurve], lines: Sequence[Line]) -> None:
    looks = {one.name: look(one.number) for one in drawn}
    handles = [
        Line2D([], [], color=colour, ls=dashes, lw=1, label=name) for name, (colour, dashes) in looks.items()
    ]
    handles += [Line2D([], [], color=one.colour, ls=one.dashes, lw=0.8, label=one.label) for one in lines]
    if len(handles) > 1:
        widest_mm = _MARK_MM + _LETTER_MM * max(len(str(one.get_label())) for one in handles)
        columns = max(int(made.get_figwidth() / MM / widest_mm), 1)
        legend_above(made, handles, min(len(handles), columns, 4))


@dataclass(frozen=True)
class MeanCurve:
    """A curve of means and the values behind it at each x. Its number determines colour and dashes."""

    name: str
    x: Sequence[float]
    values: Sequence[Sequence[float | None]]
    number: int = 0


def quartiles(
    curves: Sequence[MeanCurve], labels: tuple[str, str], path: Path, lines: Sequence[Line] = ()
) -> None:
    """The median of each curve, with a band from quartile to quartile; both end where they are not finite.
    Single values have a line and no band.
    """
    with drawing(path, labels[1], _HEIGHT_MM + _LEGEND_MM, 0.7) as made:
        axes = made.subplots()
        for curve in curves:
            colour, dashes = look(curve.number)
            low, middle, high = (
                np.array([_finite(quantile(values, share)) for values in curve.values])
                for share in (0.25, 0.5, 0.75)
            )
            axes.plot(curve.x, middle, color=colour, ls=dashes, lw=1, zorder=4)
            axes.fill_between(curve.x, low, high, color=colour, alpha=0.15, lw=0, zorder=2)
        for line in lines:
            axes.axvline(line.value, color=line.colour, ls=line.dashes, lw=0.8, zorder=2)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        _legend(made, curves, lines)


def scatter(curves: Sequence[MeanCurve], labels: tuple[str, str], path: Path) -> None:
    """A dot for each value of each curve, those of one curve beside those of the next; none where a value is
    not finite.
    """
    with drawing(path, labels[1], _HEIGHT_MM + _LEGEND_MM, 0.7) as made:
        axes = made.subplots()
        for place, curve in enumerate(curves):
            dots = [
                (x + place - (len(curves) - 1) / 2, value)
                for x, values in zip(curve.x, curve.values, strict=True)
                for value in values
                if value is not None and math.isfinite(value)
            ]
            axes.plot(
                [x for x, _ in dots],
                [y for _, y in dots],
                _DOTS[place % len(_DOTS)],
                color=look(curve.number)[0],
                ms=1.4,
                mew=0,
                alpha=0.5,
                label=curve.name,
                zorder=3,
                rasterized=len(dots) > _MANY,
            )
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        made.legend(loc="outside upper center", ncols=min(len(curves), 4), frameon=False, markerscale=2)


def differences(curves: Sequence[MeanCurve], labels: tuple[str, str], path: Path) -> None:
    """Differences from zero: at each x the middle one of three values, in a band between the others."""
    with drawing(path, labels[1], _HEIGHT_MM + _LEGEND_MM, 0.7) as made:
        axes = made.subplots()
        axes.axhline(0, color=GREY, lw=0.6, zorder=1)
        for curve in curves:
            colour, dashes = look(curve.number)
            low, middle, high = (np.array([_finite(v[place]) for v in curve.values]) for place in range(3))
            axes.plot(curve.x, middle, color=colour, ls=dashes, lw=1, zorder=4)
            axes.fill_between(curve.x, low, high, color=colour, alpha=0.12, lw=0, zorder=2)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        _legend(made, curves, [Line(0, "no difference", "-", GREY)])


def _finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else math.nan
