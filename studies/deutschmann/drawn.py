"""The figure of the page on object sizes: a panel per link, with a curve for each sender."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from bentpipe.study.curves import look
from bentpipe.study.figures import drawing, legend_above, panels_of
from bentpipe.study.markdown import bytes_as

_PANEL_MM, _LEGEND_MM, _ACROSS = 55, 10, 3
_TICKS_S = (0.1, 0.3, 1, 3, 10, 30, 100)


@dataclass(frozen=True)
class Curve:
    """Of one sender over one link."""

    sizes: Sequence[int]
    done_s: Sequence[float]
    set_up_s: Sequence[float]


def draw(panels: Sequence[tuple[str, dict[str, Curve]]], path: Path) -> None:
    names = list(dict.fromkeys(name for _, curves in panels for name in curves))
    across = min(_ACROSS, len(panels))
    sizes = sorted({size for _, curves in panels for curve in curves.values() for size in curve.sizes})
    height_mm = _PANEL_MM * -(-len(panels) // across) + _LEGEND_MM
    with drawing(path, "download time by object size", height_mm) as made:
        for place, axes in enumerate(panels_of(made, len(panels), _ACROSS, share=True)):
            title, curves = panels[place]
            axes.set_title(title)
            for name, curve in curves.items():
                colour, dashes = look(names.index(name))
                axes.plot(curve.sizes, curve.done_s, color=colour, ls=dashes, lw=1, zorder=3)
                axes.plot(curve.sizes[0] / 2, curve.set_up_s[0], ">", color=colour, ms=3, mew=0, zorder=4)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlim(sizes[0] / 3, 1.3 * sizes[-1])
            axes.set_xticks(sizes)
            axes.set_yticks(_TICKS_S)
            axes.xaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_as(round(value))))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.tick_params(axis="x", rotation=45, labelbottom=True)
            if place % across == 0:
                axes.set_ylabel("time (s)")
        looks = {name: look(number) for number, name in enumerate(names)}
        keys = [Line2D([], [], color=colour, ls=dashes, lw=1, label=name)
                for name, (colour, dashes) in looks.items()]  # fmt: skip
        keys.append(Line2D([], [], color="black", marker=">", ms=3, ls="", label="set-up"))
        legend_above(made, keys, 4)
