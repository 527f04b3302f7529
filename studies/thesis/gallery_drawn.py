"""A trace as the thesis draws it: stream offsets over time, and the rate over 1 s beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bentpipe.analysis.link_facts import LinkFacts
from bentpipe.analysis.plots import series
from bentpipe.analysis.plots.canvas import BLACK, BLUE, GREY, ORANGE, PALE, VERMILLION
from bentpipe.runs.records import Record
from bentpipe.study.figures import drawing, legend_above

_BIN_S = 1.0
_DPI = 200  # of dots, which are an image: they are thousands
_MB = 1e6


@dataclass(frozen=True)
class TracePicture:
    """The data of a picture: the packets of a trial, and the records of its cell."""

    packets: pa.Table  # of one connection
    link: LinkFacts
    trial: str
    records: Sequence[Record]

    @property
    def others(self) -> list[Record]:
        return [one for one in self.records if one.trial != self.trial and any(one.received_bytes)]


def draw(picture: TracePicture, path: Path) -> None:
    """Write it to `path`."""
    with drawing(path, "offset and rate over time", 58, dpi=_DPI) as made:
        left, right = made.subplots(1, 2)
        for record in picture.others:
            _other(left, right, record, (picture.link.rtt_ms or 0.0) / 2e3)
        _offsets(left, picture)
        _rates(right, picture)
        for axes in (left, right):
            axes.set_xlabel("time (s)")
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
        keys = [
            Line2D([], [], color=BLUE, marker="o", ms=3, ls="", label="first transmission"),
            Line2D([], [], color=VERMILLION, marker="^", ms=3, ls="", label="retransmission"),
            Line2D([], [], color=BLACK, marker="x", ms=3, ls="", label="lost"),
            Line2D([], [], color=BLUE, label="IP packets"),
            Line2D([], [], color=ORANGE, ls="--", label="new stream bytes"),
            Line2D([], [], color=PALE, label="other iterations"),
        ]
        legend_above(made, keys, 6)


def _offsets(axes: Axes, picture: TracePicture) -> None:
    sent = series.offset(picture.packets, "forward", "server")
    again = sent.retransmitted
    looks = ((~again, BLUE, "o", 0.7), (again, VERMILLION, "^", 1.2), (sent.lost, BLACK, "x", 1.6))
    for keep, colour, shape, size in looks:
        axes.plot(
            sent.time_s[keep],
            sent.start[keep] / _MB,
            shape,
            color=colour,
            ms=size,
            mew=0.3 if shape == "x" else 0,
            rasterized=True,
        )
    axes.set_ylabel("stream offset (MB)")


def _rates(axes: Axes, picture: TracePicture) -> None:
    rate = series.rate(picture.packets, "forward", _BIN_S, "server")
    edges = np.append(rate.start_s, rate.start_s[-1] + _BIN_S)
    axes.stairs(rate.bps("raw") / 1e6, edges, color=BLUE)
    axes.stairs(rate.bps("payload") / 1e6, edges, color=ORANGE, ls="--")
    if picture.link.forward_rate_bps is not None:
        axes.axhline(picture.link.forward_rate_bps / 1e6, color=GREY, lw=0.6, ls="-.")
    axes.set_ylabel("rate over 1 s (Mbit/s)")


def _other(left: Axes, right: Axes, record: Record, earlier_s: float) -> None:
    """Draw what another iteration received at the client: half a round trip after it was sent."""
    counts: npt.NDArray[np.int64] = np.asarray([0, *record.received_bytes], np.int64)
    counts = counts[: int(np.searchsorted(counts, counts[-1])) + 1]
    times = np.arange(len(counts)) * record.received_step_s - earlier_s
    left.plot(times, counts / _MB, color=PALE, lw=0.6, zorder=1)
    edges = np.arange(0.0, times[-1] + _BIN_S, _BIN_S)
    arrived = np.diff(np.interp(edges, times, counts))
    right.stairs(arrived * 8 / _BIN_S / 1e6, edges, color=PALE, lw=0.6)
