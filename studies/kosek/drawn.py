"""The figures of the page on proxies: a row of panels per scenario, a panel per loss ratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from bentpipe.analysis.plots.canvas import BLUE, GREEN, GREY, PURPLE, VERMILLION
from bentpipe.study.figures import drawing, legend_above

from .published import GoodputRow, Kosek
from .runs import QUIC, TCP, KosekRuns, LossyPath, ratio

_ROW_MM, _LEGEND_MM = 42, 10
_TICKS = (0.5, 1, 2, 5, 10, 20)
_HIGHEST, _LOWEST = 25, 0.4  # of the ratio
_RATES = (0.1, 0.3, 1, 3, 10, 30)  # Mbit/s
_LEAST = 0.1
NAMES = {
    "ratio": "Bytes received with proxies, as a multiple of those without, over QUIC and TCP",
    "goodput": "Goodput over time of QUIC and TCP, with proxies and without",
}
_WORDS = {QUIC: "QUIC", TCP: "TCP"}
# By transport, and whether there are proxies.
_LOOKS: dict[tuple[str, bool], tuple[str, str]] = {
    (QUIC, False): (BLUE, "-"),
    (QUIC, True): (VERMILLION, "--"),
    (TCP, False): (GREEN, "-."),
    (TCP, True): (PURPLE, ":"),
}


@dataclass(frozen=True)
class Drawing:
    """The figures' data: the runs, the proxies of each transport, and the published values."""

    study: KosekRuns
    chains: dict[str, str]  # transport → chain
    known: Kosek

    def draw(self, folder: Path) -> dict[str, Path]:
        """Draw both: name → file."""
        files = {name: folder / f"kosek-{name}.svg" for name in NAMES}
        ratios = [
            Line2D([], [], color=_LOOKS[one, True][0], ls=_LOOKS[one, True][1], lw=1, label=_WORDS[one])
            for one in self.chains
        ]
        goodputs = [
            Line2D([], [], color=_LOOKS[one, way][0], ls=_LOOKS[one, way][1], lw=1,
                   label=f"{_WORDS[one]}{', proxies' if way else ''}")
            for one in self.chains
            for way in (False, True)
        ]  # fmt: skip
        dots = Line2D([], [], color=GREY, marker="o", ms=3, ls="", label="published, of each second")
        self._panels(files["ratio"], self._ratio, "bytes, with / without proxies", [*ratios, dots])
        line = Line2D([], [], color=GREY, lw=0.8, ls=":", label="rate of the link")
        self._panels(files["goodput"], self._goodput, "goodput (Mbit/s)", [*goodputs, dots, line])
        return files

    def _panels(
        self, path: Path, panel: Callable[[Axes, LossyPath], None], label: str, keys: list[Line2D]
    ) -> None:
        rows = [self.study.of_scenario(name) for name in self.study.scenarios]
        across = max(map(len, rows))
        with drawing(path, label, _ROW_MM * len(rows) + _LEGEND_MM) as made:
            grid = made.subplots(len(rows), across, squeeze=False, sharex=True, sharey=True)
            for line, roads in zip(grid, rows, strict=True):
                for place, axes in enumerate(line):
                    if place >= len(roads) or not self._pairs(roads[place]):
                        axes.set_axis_off()
                        continue
                    axes.set_title(f"{roads[place].title} loss")
                    axes.set_xlim(0, self.study.until_s)
                    panel(axes, roads[place])
                line[0].set_ylabel(label)
            for axes in grid[-1]:
                axes.set_xlabel("time since the first byte (s)")
            legend_above(made, keys, len(keys))

    def _pairs(self, road: LossyPath) -> list[str]:
        """The transports that this road has been measured with, with proxies and without."""
        return [one for one, chain in self.chains.items() if self.study.pair(road, chain) is not None]

    def _published(self, road: LossyPath) -> GoodputRow | None:
        return self.known.row(road.scenario, road.loss)

    def _ratio(self, axes: Axes, road: LossyPath) -> None:
        axes.axhline(1, color=GREY, lw=0.7, ls="--", zorder=1)
        then = self._published(road)
        for one in self._pairs(road):
            pair = self.study.pair(road, self.chains[one])
            assert pair is not None
            colour, dashes = _LOOKS[one, True]
            axes.plot(pair[1].times, np.clip(ratio(*pair), _LOWEST, _HIGHEST), color=colour, ls=dashes,
                      lw=1, zorder=3)  # fmt: skip
            if then is not None:
                there = then.ratio(one)
                axes.plot(np.arange(1, len(there) + 1), there, "o", color=colour, ms=2, mew=0, zorder=4)
        axes.set_yscale("log")
        axes.set_ylim(_LOWEST, _HIGHEST)
        axes.set_yticks(_TICKS)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))

    def _goodput(self, axes: Axes, road: LossyPath) -> None:
        rate_bps = self.study.rate_bps(road)
        axes.axhline(rate_bps / 1e6, color=GREY, lw=0.8, ls=":", zorder=1)
        then = self._published(road)
        for transport in self._pairs(road):
            pair = self.study.pair(road, self.chains[transport])
            assert pair is not None
            for one, proxies in zip(pair, (True, False), strict=True):
                colour, dashes = _LOOKS[transport, proxies]
                here = one.per_second / 1e6
                axes.plot(np.arange(len(here)) + 0.5, np.maximum(here, _LEAST), color=colour, ls=dashes,
                          lw=1, zorder=3)  # fmt: skip
                if then is not None:
                    there = then.rates(transport, proxies=proxies)
                    axes.plot(np.arange(len(there)) + 0.5, there, "o", color=colour, ms=2, mew=0, zorder=4)
        axes.set_yscale("log")
        axes.set_ylim(_LEAST, 2 * rate_bps / 1e6)
        axes.set_yticks(_RATES)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
