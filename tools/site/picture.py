"""Draws the picture of the site's first page: 10 MiB over `sat`, with two congestion controls of one library.

It runs the trials and writes `docs/images/cubic-and-bentpipe-light.svg` and `…-dark.svg`; another folder can
be named. The run is of one seed, in virtual time: the same programs draw the same picture.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from bentpipe.analysis import ideal_sender, traces
from bentpipe.analysis.plots import series
from bentpipe.analysis.plots.canvas import BLUE, ORANGE, SKY, VERMILLION
from bentpipe.analysis.traces import Analysis
from bentpipe.cli import invoke
from bentpipe.runs.records import Record

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
NAME = "cubic-and-bentpipe"
CONTROLS = ("bentpipe", "cubic")
RUN = ["run", "--scenario", "sat", "--client", "noq", "--iterations", "1", "--trace", "all", "--no-report",
       "--seed", "1", "--server", ",".join(f"noq:cc={one}" for one in CONTROLS)]  # fmt: skip
_INCHES = (8.4, 3.7)
_POINTS = 400  # of a curve
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "bentpipe",
}


@dataclass(frozen=True)
class Colours:
    """The colours of a picture, on a ground of `name`'s kind."""

    name: str
    text: str
    grid: str
    ideal: str
    senders: tuple[str, str]


LIGHT = Colours("light", "#303030", "#e4e4e4", "#767676", (BLUE, VERMILLION))
DARK = Colours("dark", "#d0d0d0", "#303336", "#9a9a9a", (SKY, ORANGE))


@dataclass(frozen=True)
class Transfer:
    """What a client has received, over time."""

    control: str
    record: Record
    analysis: Analysis
    seconds: Any
    megabytes: Any


def transfers(folder: Path) -> list[Transfer]:
    """Run the trials in `folder`; what came of each."""
    if invoke([*RUN, "--out", str(folder)]):
        sys.exit("error: the trials of the picture failed (hint: make setup)")
    run = traces.TracedRun.read(folder)
    found = []
    for control, record in zip(CONTROLS, _in_order(run), strict=True):
        analysis = traces.of_trial(folder / "trials" / record.trial, run)
        packets = series.of_connection(analysis.packets, analysis.connection().connection)
        curve = series.received(packets, "forward")
        at = np.linspace(0, curve.time_s[-1], _POINTS)
        places = np.searchsorted(curve.time_s, at, "right")
        received = np.concatenate([[0], curve.bytes])[places] / 1e6
        found.append(Transfer(control, record, analysis, at, received))
    return found


def _in_order(run: traces.TracedRun) -> list[Record]:
    by_server = {record.server: record for record in run.records.values()}
    return [by_server[f"noq:cc={control}"] for control in CONTROLS]


def draw(found: list[Transfer], colours: Colours, path: Path) -> None:
    """The picture in these colours."""
    with matplotlib.rc_context(_STYLE):
        made = Figure(_INCHES, layout="constrained")
        axes = made.subplots()
        for one, colour in zip(found, colours.senders, strict=True):
            axes.plot(one.seconds, one.megabytes, color=colour, lw=3, solid_capstyle="round")
            text = f"cc={one.control}: {one.record.completion_s:.1f} s"
            half = len(one.seconds) * 2 // 3
            side = "right" if one.control == CONTROLS[0] else "left"
            axes.annotate(text, (one.seconds[half], one.megabytes[half]), (-14 if side == "right" else 14, 0),
                          textcoords="offset points", ha=side, va="center", color=colour,
                          fontsize=15, fontweight="bold")  # fmt: skip
        record, rtt_ms = found[0].record, found[0].analysis.link.rtt_ms
        assert record.limit_s is not None and rtt_ms is not None
        size = record.size_bytes
        ideal = ideal_sender.curve("transfer", size, record.limit_s, rtt_ms / 1e3)
        assert ideal is not None
        axes.plot([x for x, _ in ideal], [y / ideal_sender.HEADERS / 1e6 for _, y in ideal],
                  color=colours.ideal, lw=1.5, ls="--")  # fmt: skip
        axes.annotate("an ideal sender", (ideal[-1][0], size / 1e6), (0, 6), textcoords="offset points",
                      ha="center", va="bottom", color=colours.ideal)  # fmt: skip
        axes.set_xlabel("seconds from the client's first packet", color=colours.text)
        axes.set_ylabel("MB received", color=colours.text)
        axes.set_xlim(0, None)
        axes.set_ylim(0, size / 1e6 * 1.1)
        axes.tick_params(colors=colours.text, length=0)
        axes.grid(color=colours.grid, lw=0.8)
        axes.set_axisbelow(True)
        for spine in axes.spines.values():
            spine.set_color(colours.grid)
        made.savefig(path, transparent=True, metadata={"Date": None, "Creator": "tools/site/picture.py"})


def main() -> None:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    with tempfile.TemporaryDirectory() as scratch:
        found = transfers(Path(scratch) / "run")
        for colours in (LIGHT, DARK):
            draw(found, colours, out / f"{NAME}-{colours.name}.svg")


if __name__ == "__main__":
    main()
