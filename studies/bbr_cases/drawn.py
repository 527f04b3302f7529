"""The figure of a case: a small panel for each sender, all with the same axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from bentpipe.analysis.plots.canvas import BLUE, GREY
from bentpipe.analysis.plots.table import Floats
from bentpipe.study.figures import drawing, panels_of

from .cases import Case
from .signals import Signals

ACROSS = 5
_ROW_MM, _FRAME_MM = 21, 8
_POINTS, _FINE = 90, 8  # of a line; times looked at for each point
_LABELS = {
    "pace": "sent / rate of the link",
    "use": "arrived / rate of the link",
    "flight": "in flight (BDP)",
}
_REFERENCE = 1.0  # the link's rate, or a BDP


@dataclass(frozen=True)
class Panel:
    """A sender's panel."""

    title: str
    signals: Signals


def draw(case: Case, panels: Sequence[Panel], path: Path) -> None:
    """Write the figure to `path`."""
    rows = -(-len(panels) // ACROSS)
    with drawing(path, f"{case.name}: {case.title}", _FRAME_MM + _ROW_MM * rows) as made:
        places = panels_of(made, len(panels), ACROSS, share=True)
        top = _top([_values(case, one.signals)[1] for one in panels])
        for number, (axes, one) in enumerate(zip(places, panels, strict=True)):
            _line(axes, case, one, top)
            axes.tick_params(left=number % ACROSS == 0, bottom=number >= len(panels) - ACROSS)
        places[0].set(xlim=case.span_s, ylim=(0, top))
        places[0].locator_params(nbins=4)
        made.supxlabel("time (s)", fontsize=7)
        made.supylabel(_LABELS[case.draws], fontsize=7)


def _top(values: Sequence[Floats]) -> float:
    """What most panels need: of those that need far more, it is written."""
    highest = [float(one.max()) for one in values]
    return 1.2 * max(min(float(np.quantile(highest, 0.9)), max(highest)), 1.2)


def _line(axes: Axes, case: Case, panel: Panel, top: float) -> None:
    times, values = _values(case, panel.signals)
    axes.axhline(_REFERENCE, color=GREY, lw=0.5, ls=":")
    axes.plot(np.round(times, 3), np.round(values, 3), color=BLUE, lw=0.7)
    axes.set_title(panel.title, fontsize=6)
    if (highest := float(values.max())) > top:
        axes.text(0.98, 0.86, f"up to {highest:.1f}", transform=axes.transAxes, ha="right", fontsize=5.5)


def _values(case: Case, signals: Signals) -> tuple[Floats, Floats]:
    """Times and the quantity at each: rates from it to the next; of what is in flight until then, the value
    farthest from its median, so that short dips and peaks are seen.
    """
    times = np.linspace(*case.span_s, _POINTS)
    if case.draws == "flight":
        fine = np.linspace(*case.span_s, _POINTS * _FINE + 1)[:-1]
        bdps = signals.bdps(fine).reshape(_POINTS, _FINE)
        farthest = np.abs(bdps - np.median(bdps)).argmax(axis=1)
        return times, bdps[np.arange(_POINTS), farthest]
    counted = signals.sent if case.draws == "pace" else signals.arrived
    bits = 8 * np.diff(counted.until(times))
    return times[:-1], bits / np.diff(times) / signals.path.rate_bps
