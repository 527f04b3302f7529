"""The pictures: goodput by congestion control, rates of both links, sizes of packets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bentpipe import labels
from bentpipe.analysis.plots.canvas import BLACK, BLUE, ORANGE, PALE
from bentpipe.study.figures import drawing, legend_above, panels_of

from .control import Controlled, short
from .controllers import is_plain, named
from .packets import BIN_S, TracedTransfer

_ROW_MM, _FRAME_MM = 4.2, 18
_ACROSS = 4
_PANEL_MM = 34
_DPI = 200  # of dots, which are an image: they are thousands


def control(found: Controlled, path: Path) -> None:
    """A panel per scenario, a row per server that chooses a controller alone, those of one name together."""
    servers = sorted((one for one in found.servers if is_plain(one)), key=lambda one: (named(one), one))
    rows = {server: row for row, server in enumerate(reversed(servers))}
    with drawing(path, "goodput by congestion control", _FRAME_MM + _ROW_MM * len(rows)) as made:
        panels = made.subplots(1, len(found.scenarios), squeeze=False).flat
        for place, (axes, scenario) in enumerate(zip(panels, found.scenarios, strict=True)):
            _control(axes, {one: found.goodputs(scenario, one) for one in rows}, rows)
            axes.set_title(short(scenario))
            names = [f"{named(one)}: {labels.variant(one).stack}" for one in rows]
            axes.set_yticks(list(rows.values()), ["" for _ in names] if place else names)


def _control(axes: Axes, values: Mapping[str, Sequence[float]], rows: Mapping[str, int]) -> None:
    servers = list(rows)
    for below, above in itertools.pairwise(servers):
        if named(above) != named(below):
            axes.axhline(rows[below] + 0.5, color=PALE, lw=0.4, zorder=1)
    for server, goodputs in values.items():
        if goodputs:
            mbit = [one / 1e6 for one in goodputs]
            axes.plot(mbit, [rows[server]] * len(mbit), "o", ms=2.2, mew=0, color=BLUE, alpha=0.6, zorder=4)
            axes.plot([np.median(mbit)], [rows[server]], "|", ms=6, mew=1, color=BLACK, zorder=5)
    axes.set_xscale("log")
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel("goodput (Mbit/s, logarithmic)")
    ticks = (0.2, 0.5, 1, 2, 5, 10)
    axes.set_xlim(0.15, 14)
    axes.set_xticks(ticks, [f"{one:g}" for one in ticks])
    axes.xaxis.minorticks_off()
    axes.tick_params(axis="y", length=0)


def return_rates(trials: Mapping[str, TracedTransfer], path: Path) -> None:
    """A panel per client: the return link's rate and, behind it, the forward link's."""
    highest = max(one.largest_return_bps for one in trials.values()) / 1e3
    most = max(float(one.forward_bps.max()) for one in trials.values()) / 1e6
    with drawing(path, "rates of both links over time", _height_mm(trials), dpi=_DPI) as made:
        panels = panels_of(made, len(trials), _ACROSS)
        for axes, (name, one) in zip(panels, trials.items(), strict=True):
            edges = np.arange(len(one.return_bps) + 1) * BIN_S
            behind = axes.twinx()
            there = np.arange(len(one.forward_bps) + 1) * BIN_S
            behind.stairs(one.forward_bps / 1e6, there, color=ORANGE, lw=0.7, ls="--")
            behind.set_ylim(0, 1.05 * most)
            axes.stairs(one.return_bps / 1e3, edges, color=BLUE, lw=0.9)
            axes.set_ylim(0, 1.05 * highest)
            axes.set_xlim(0, edges[-1])
            server = labels.variant(one.record.server).stack
            axes.set_title(f"{name}, server {server}")
        keys = [
            Line2D([], [], color=BLUE, label="return link (kbit/s, left)"),
            Line2D([], [], color=ORANGE, ls="--", label="forward link (Mbit/s, right)"),
        ]
        legend_above(made, keys, 2)
        made.supxlabel("time (s)", fontsize=7)


def packet_sizes(trials: Mapping[str, TracedTransfer], path: Path) -> None:
    """A panel per server: the size of each packet with data over time."""
    largest = max(max(one.data_sizes) for one in trials.values())
    with drawing(path, "sizes of packets over time", _height_mm(trials), dpi=_DPI) as made:
        panels = panels_of(made, len(trials), _ACROSS)
        for axes, (name, one) in zip(panels, trials.items(), strict=True):
            axes.plot(one.data_times_s, one.data_sizes, "o", ms=1, mew=0, color=BLUE, rasterized=True)
            axes.set_ylim(0, 1.05 * largest)
            axes.set_xlim(left=0)
            axes.set_title(name)
        made.supxlabel("time (s)", fontsize=7)
        made.supylabel("QUIC packet with data (bytes)", fontsize=7)


def _height_mm(trials: Mapping[str, TracedTransfer]) -> float:
    return _PANEL_MM * -(-len(trials) // min(_ACROSS, len(trials))) + 8
