"""The figures of the page on SEARCH."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from bentpipe.analysis.plots.canvas import GREEN
from bentpipe.study import curves
from bentpipe.study.curves import Distribution, MeanCurve
from bentpipe.study.figures import Line
from bentpipe.study.slow_starts import MB

from .study import PublishedComparison

_PANELS_MB = (50, 100, 125, 150, 175, 200)
NAMES = {
    "exit": "From SEARCH's exit to the first loss, distribution",
    "times": "Median time to so many MB, with quartiles",
    "saved": "Time saved, by medians and quartiles",
    "distributions": "Time to so many MB, distributions",
    "window": "Share of the window that is taken off, distribution",
}


def draw(study: PublishedComparison, folder: Path) -> dict[str, Path]:
    """Draw those for which there is anything to be seen: name → file."""
    drawing: dict[str, Callable[[PublishedComparison, Path], bool]] = {
        "exit": _exit,
        "times": _times,
        "saved": _saved,
        "distributions": _distributions,
        "window": _window,
    }
    files = {name: folder / f"search-{name}.svg" for name in NAMES}
    return {name: file for name, file in files.items() if drawing[name](study, file)}


def _exit(study: PublishedComparison, path: Path) -> bool:
    leads = study.leads
    if leads is None or not any(map(math.isfinite, leads)):
        return False
    lines = [Line(0, "the first loss", ":"), Line(1, "one round trip before it", "--", GREEN)]
    series = [Distribution("SEARCH's exit", leads)]
    curves.distributions([("", series)], "from the exit to the first loss (round trips)", path, lines)
    return True


def _times(study: PublishedComparison, path: Path) -> bool:
    made = [
        MeanCurve(
            study.name(one),
            study.sizes_mb,
            [one.times(size * MB) for size in study.sizes_mb],
            study.number(one),
        )
        for one in study.groups
    ]
    curves.quartiles(made, ("delivered (MB)", "time (s), median and quartiles"), path)
    return True


def _saved(study: PublishedComparison, path: Path) -> bool:
    made = [
        MeanCurve(
            study.name(one),
            study.sizes_mb,
            [study.saved(one, size) for size in study.sizes_mb],
            study.number(one),
        )
        for one in study.others
    ]
    curves.differences(made, ("delivered (MB)", "sooner than the baseline (s)"), path)
    return True


def _distributions(study: PublishedComparison, path: Path) -> bool:
    panels = [
        (
            f"{size} MB",
            [Distribution(study.name(one), one.times(size * MB), study.number(one)) for one in study.groups],
        )
        for size in _PANELS_MB
        if size in study.sizes_mb
    ]
    if not any(math.isfinite(value) for _, series in panels for one in series for value in one.values):
        return False
    curves.distributions(panels, "time (s)", path)
    return True


def _window(study: PublishedComparison, path: Path) -> bool:
    if not study.cuts:
        return False
    beta = Line(study.known.beta_cut, "what CUBIC takes off after a loss", "--")
    series = [Distribution(study.name(one), cuts, study.number(one)) for one, cuts in study.cuts]
    curves.distributions([("", series)], "share of the window that is taken off", path, [beta], (0, 1))
    return True
