"""The pictures of chapter 5 and appendix B, from our trials: boxes, swarms, violins, relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bentpipe.analysis.plots.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    VERMILLION,
)
from bentpipe.study.figures import WIDTH_MM, drawing, legend_above

from .intervals import Pairs

# A colour and a shape for each stack, so that greyscale suffices.
_LOOKS = list(
    zip(
        (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK, GREY, BLUE, VERMILLION, GREEN, ORANGE),
        "osD^vPX*<>dp",
        strict=True,
    )
)
_STEP = 0.055  # of a category: how far dots of a swarm move aside
_WIDEST = 7  # steps to either side; where more dots are equal, some lie upon others
_POINTS = 60  # of the outline of a violin


def look(number: int) -> tuple[str, str]:
    return _LOOKS[number % len(_LOOKS)]


@dataclass(frozen=True)
class Boxed:
    """All trials of a scenario: failed ones count as 0."""

    name: str
    goodputs_mbit: Sequence[float]
    rate_mbit: float


def boxes(measured: Sequence[Boxed], path: Path) -> None:
    """Goodput at the left, efficiency at the right, in the source's figure 5.2."""
    with drawing(path, "goodput and efficiency of all trials", 62) as made:
        left, right = made.subplots(1, 2)
        _boxes(left, [one.goodputs_mbit for one in measured])
        _boxes(right, [[100 * x / one.rate_mbit for x in one.goodputs_mbit] for one in measured])
        highest = max(max(one.goodputs_mbit, default=0) for one in measured)
        for place, one in enumerate(measured):
            if one.rate_mbit <= 1.3 * highest:
                left.plot([place + 0.6, place + 1.4], [one.rate_mbit] * 2, color=VERMILLION, lw=1)
        right.axhline(100, color=VERMILLION, lw=1)
        left.set_ylabel("goodput (Mbit/s)")
        right.set_ylabel("efficiency (%)")
        for axes in (left, right):
            axes.set_xticks(range(1, len(measured) + 1), [one.name for one in measured])
            axes.set_ylim(bottom=0)


def _boxes(axes: Axes, values: Sequence[Sequence[float]]) -> None:
    axes.boxplot(
        values,
        widths=0.6,
        medianprops={"color": VERMILLION},
        flierprops={"marker": ".", "ms": 2, "mew": 0, "mfc": GREY, "rasterized": True},
        boxprops={"lw": 0.7},
        whiskerprops={"lw": 0.7},
        capprops={"lw": 0.7},
    )
    axes.margins(x=0.02)


def swarms(
    tables: Mapping[str, Pairs], names: Mapping[str, str], rates: Mapping[str, float], path: Path
) -> None:
    """The mean goodput of every pair without a failed trial, a category for each scenario: figure 5.3."""
    servers = list(names)
    with drawing(path, "mean goodput of every pair", 88) as made:
        axes = made.subplots()
        top = max((value for table in tables.values() for value in table.values()), default=1e6) / 1e6
        for place, (name, table) in enumerate(tables.items()):
            ordered = sorted(table.items(), key=lambda one: one[1])
            heights = np.array([value / 1e6 for _, value in ordered])
            aside = place + _STEP * _spread(heights, 0.016 * top)
            for number, server in enumerate(servers):
                mine = [at for at, (pair, _) in enumerate(ordered) if pair[1] == server]
                colour, shape = look(number)
                axes.plot(aside[mine], heights[mine], shape, color=colour, ms=2.6, mew=0, alpha=0.85)
            if rates[name] / 1e6 <= 1.2 * top:
                axes.plot([place - 0.42, place + 0.42], [rates[name] / 1e6] * 2, color=VERMILLION, lw=1)
        axes.set_xticks(range(len(tables)), list(tables))
        axes.set(xlim=(-0.5, len(tables) - 0.5), ylabel="mean goodput of a pair (Mbit/s)")
        axes.set_ylim(bottom=0)
        _key(made, [names[one] for one in servers], "server: ")


def _spread(heights: npt.NDArray[np.float64], near: float) -> npt.NDArray[np.float64]:
    """The number of steps by which each dot is moved aside to avoid overlaps: 0, 1, -1, 2, -2, …"""
    taken: list[tuple[float, int]] = []
    found: list[int] = []
    for height in heights:
        close = {step for other, step in taken if height - other < near}
        steps = [sign * step for step in range(_WIDEST + 1) for sign in (1, -1)]
        step = next((one for one in steps if one not in close), steps[len(found) % len(steps)])
        taken.append((float(height), step))
        found.append(step)
    return np.array(found, dtype=np.float64)


def _key(made: Figure, names: Sequence[str], before: str = "") -> None:
    handles = []
    for number, name in enumerate(names):
        colour, shape = look(number)
        handles.append(
            Line2D([], [], color=colour, marker=shape, ls="", ms=4, mew=0, label=f"{before}{name}")
        )
        before = ""
    made.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False,
                handletextpad=0.1, columnspacing=0.9)  # fmt: skip


@dataclass(frozen=True)
class Roles:
    """The goodputs of all trials of a stack that succeeded, in Mbit/s."""

    name: str
    as_client: Sequence[float]
    as_server: Sequence[float]


def violins(panels: Sequence[tuple[str, Sequence[Roles]]], path: Path) -> None:
    """A panel per scenario: of each stack at the left its trials as a client, at the right as a server."""
    with drawing(path, "distribution of goodput by stack and role", 52 * len(panels) + 8) as made:
        for axes, (title, stacks) in zip(
            made.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True
        ):
            for place, one in enumerate(stacks):
                _violin(axes, place, one.as_client, BLUE, -1)
                _violin(axes, place, one.as_server, ORANGE, 1)
            axes.set_xticks(range(len(stacks)), [one.name for one in stacks])
            axes.set(title=title, ylabel="goodput (Mbit/s)", xlim=(-0.6, len(stacks) - 0.4))
            least = min(value for one in stacks for value in (*one.as_client, *one.as_server))
            axes.set_ylim(bottom=0 if least < 0.5 * axes.get_ylim()[1] else 0.95 * least)
        keys = [
            Line2D([], [], color=BLUE, lw=4, label="as client (left)"),
            Line2D([], [], color=ORANGE, lw=4, label="as server (right)"),
            Line2D([], [], color=BLACK, lw=0.8, label="quartiles"),
        ]
        legend_above(made, keys, 3)


def _violin(axes: Axes, place: int, values: Sequence[float], colour: str, side: int) -> None:
    """Half of one, from the least value to the largest; a stroke where all are equal."""
    if not values:
        return
    quartiles = np.quantile(values, [0.25, 0.5, 0.75])
    if min(values) == max(values) or len(values) < 2:
        axes.plot([place, place + 0.4 * side], [values[0]] * 2, color=colour, lw=2)
        return
    drawn = axes.violinplot(values, [place], widths=0.86, points=_POINTS, showextrema=False)
    body: PolyCollection = drawn["bodies"][0]  # type: ignore[index]
    outline = np.asarray(body.get_paths()[0].vertices)
    outline[:, 0] = np.clip(outline[:, 0], *((-np.inf, place) if side < 0 else (place, np.inf)))
    body.set(facecolor=colour, alpha=0.75, edgecolor=BLACK, linewidth=0.3)
    for value, dashes in zip(quartiles, (":", "-", ":"), strict=True):
        axes.plot([place, place + 0.3 * side], [value] * 2, color=BLACK, lw=0.7, ls=dashes)


def relations(
    tables: Mapping[str, Pairs], names: Mapping[str, str], texts: Mapping[tuple[str, str], str], path: Path
) -> None:
    """Efficiencies in percent of every pair over one scenario against those over another: figure 5.5. In the
    upper triangle what is said of the panel below the diagonal, by (its row, its column).
    """
    scenarios = list(tables)
    with drawing(path, "efficiency of pairs over scenarios", 0.96 * WIDTH_MM) as made:
        grid = made.subplots(len(scenarios), len(scenarios), squeeze=False)
        for y, below in enumerate(scenarios):
            for x, across in enumerate(scenarios):
                axes = grid[y, x]
                if x > y:
                    axes.set_axis_off()
                    axes.text(0.5, 0.5, texts.get((scenarios[y], scenarios[x]), ""), ha="center", va="center",
                              fontsize=6, transform=axes.transAxes)  # fmt: skip
                elif x == y:
                    axes.hist([100 * v for v in tables[below].values()], bins=20, color=PALE)
                else:
                    _relation(axes, tables[across], tables[below], names)
                if y == len(scenarios) - 1:
                    axes.set_xlabel(f"{across} (%)")
                if x == 0:
                    axes.set_ylabel("pairs" if y == 0 else f"{below} (%)")
        _key(made, list(names.values()), "server: ")


def _relation(axes: Axes, across: Pairs, below: Pairs, names: Mapping[str, str]) -> None:
    for number, server in enumerate(names):
        mine = [pair for pair in across if pair in below and pair[1] == server]
        colour, shape = look(number)
        x, y = ([100 * table[pair] for pair in mine] for table in (across, below))
        axes.plot(x, y, shape, color=colour, ms=2, mew=0, alpha=0.85)
    low, high = (end(*axes.get_xlim(), *axes.get_ylim()) for end in (min, max))
    view = axes.get_xlim(), axes.get_ylim()
    axes.plot([low, high], [low, high], color=GREY, lw=0.4, zorder=1)
    axes.set(xlim=view[0], ylim=view[1])


def by_controller(
    panels: Sequence[tuple[str, str]], tables: Mapping[str, Pairs], controller: Mapping[str, str], path: Path
) -> None:
    """Relations of two scenarios each, coloured by the congestion control of the server: figure 5.6."""
    words = list(dict.fromkeys(controller.values()))
    with drawing(path, "relations by congestion control", 74) as made:
        for axes, (across, below) in zip(
            made.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            for number, word in enumerate(words):
                both = tables[across].keys() & tables[below].keys()
                mine = sorted(pair for pair in both if controller.get(pair[1]) == word)
                colour, shape = look(number)
                x, y = ([100 * tables[name][pair] for pair in mine] for name in (across, below))
                axes.plot(x, y, shape, color=colour, ms=3, mew=0, alpha=0.85)
            axes.set(xlabel=f"efficiency over {across} (%)", ylabel=f"efficiency over {below} (%)")
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
        _key(made, words, "server: ")
