"""The figures of the page on SEARCH."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from bentpipe.analysis.plots.canvas import GREEN
from bentpipe.runs.records import Record
from bentpipe.study import curves
from bentpipe.study.curves import Distribution, MeanCurve
from bentpipe.study.figures import Line
from bentpipe.study.markdown import several
from bentpipe.study.slow_starts import MB, SlowStartTrial, VariantTrials

from .study import PublishedComparison

_PANELS_MB = (50, 100, 125, 150, 175, 200)
_BDP, _DROPS_FROM = 11.25, 18  # MB: what the path holds, and the queue above which it drops
_WINDOW_RTT = 3.5  # SEARCH compares what came in so many round trips
_SCATTER_MB = 10
NAMES = {
    "course": "What arrives against what SEARCH expects, in one run",
    "ends": "Window with which slow start ends, distribution",
    "scatter": "Time to N MB, every run",
    "exit": "From SEARCH's exit to the first loss, distribution",
    "times": "Median time to N MB, with quartiles",
    "saved": "Time saved, by medians and quartiles",
    "distributions": "Time to N MB, distributions",
    "window": "Share of the window that is taken off, distribution",
}


def draw(study: PublishedComparison, folder: Path) -> dict[str, Path]:
    """Draw those for which there is anything to be seen: name → file."""
    drawing: dict[str, Callable[[PublishedComparison, Path], bool]] = {
        "course": _course,
        "ends": _ends,
        "scatter": _scatter,
        "exit": _exit,
        "times": _times,
        "saved": _saved,
        "distributions": _distributions,
        "window": _window,
    }
    files = {name: folder / f"search-{name}.svg" for name in NAMES}
    return {name: file for name, file in files.items() if drawing[name](study, file)}


def _named(study: PublishedComparison, group: VariantTrials) -> str:
    """Its name, and how many clean runs it has."""
    return f"{study.name(group)}, {several(len(group.clean), 'run')}"


def _course(study: PublishedComparison, path: Path) -> bool:
    """Of the baseline's run whose exit comes first by the median lead: what came in the last 3.5 round trips,
    and twice what came in the 3.5 that ended a round trip before.
    """
    one = median_lead(study)
    if one is None or one.declared_s is None or one.first_loss_s is None:
        return False
    step, rtt = one.record.received_step_s, _least_rtt_s(one.record)
    times = [(place + 1) * step for place in range(len(one.record.received_bytes))]
    until = [time for time in times if time <= one.first_loss_s + rtt]
    came = [_came(one.record, time, rtt) for time in until]
    expected = [2 * _came(one.record, time - rtt, rtt) for time in until]
    made = [
        MeanCurve("arrived in 3.5 round trips", until, [[value] for value in came], 0),
        MeanCurve("expected: twice that of a round trip before", until, [[value] for value in expected], 1),
    ]
    lines = [
        Line(one.declared_s, "SEARCH's exit", "-.", GREEN),
        Line(one.first_loss_s, "the first loss", ":"),
    ]
    curves.quartiles(made, ("time (s)", "bytes (MB)"), path, lines)
    return True


def median_lead(study: PublishedComparison) -> SlowStartTrial | None:
    """The clean baseline run whose exit comes before the loss, by the median lead; None if there is none."""
    known = [(lead, one) for one in study.baseline.clean if (lead := one.lead_round_trips) and lead > 0]
    ordered = [one for _, one in sorted(known, key=lambda each: each[0])]
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def _least_rtt_s(record: Record) -> float:
    value = record.server_statistics.get("slow_start_left_min_rtt_s")
    return float(value) if isinstance(value, int | float) else 0.6


def _came(record: Record, until_s: float, rtt_s: float) -> float:
    """MB that came in the 3.5 round trips before."""
    curve, step = record.received_bytes, record.received_step_s

    def by(time_s: float) -> int:
        place = round(time_s / step) - 1
        return curve[min(place, len(curve) - 1)] if place >= 0 else 0

    return (by(until_s) - by(until_s - _WINDOW_RTT * rtt_s)) / MB


def _ends(study: PublishedComparison, path: Path) -> bool:
    series = [
        Distribution(
            _named(study, one), [size for run in one.clean if (size := run.left_mb)], study.number(one)
        )
        for one in study.groups
    ]
    if not any(one.values for one in series):
        return False
    lines = [
        Line(_BDP, "the path is full", "--", GREEN),
        Line(_BDP + _DROPS_FROM, "its queue drops at random", ":"),
    ]
    curves.distributions([("", series)], "window when slow start ends (MB)", path, lines)
    return True


def _scatter(study: PublishedComparison, path: Path) -> bool:
    sizes = [size for size in study.sizes_mb if size % _SCATTER_MB == 0]
    made = [
        MeanCurve(
            f"{study.name(one)}, {several(len(one.runs), 'run')}",
            sizes,
            [[run.reached_s(size * MB) for run in one.runs] for size in sizes],
            study.number(one),
        )
        for one in study.groups
    ]
    curves.scatter(made, ("delivered (MB)", "time (s), a dot per run"), path)
    return True


def _exit(study: PublishedComparison, path: Path) -> bool:
    leads = study.leads
    if leads is None or not any(map(math.isfinite, leads)):
        return False
    lines = [Line(0, "the first loss", ":"), Line(1, "one round trip before it", "--", GREEN)]
    series = [Distribution(f"SEARCH's exit, {several(len(leads), 'run')}", leads)]
    curves.distributions([("", series)], "from the exit to the first loss (round trips)", path, lines)
    return True


def _times(study: PublishedComparison, path: Path) -> bool:
    made = [
        MeanCurve(
            _named(study, one),
            study.sizes_mb,
            [study.times(one, size) for size in study.sizes_mb],
            study.number(one),
        )
        for one in study.groups
    ]
    curves.quartiles(made, ("delivered (MB)", "time (s), median and quartiles"), path)
    return True


def _saved(study: PublishedComparison, path: Path) -> bool:
    made = [
        MeanCurve(
            _named(study, one),
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
            [
                Distribution(_named(study, one), study.times(one, size), study.number(one))
                for one in study.groups
            ],
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
    series = [
        Distribution(f"{study.name(one)}, {several(len(cuts), 'run')}", cuts, study.number(one))
        for one, cuts in study.cuts
    ]
    curves.distributions([("", series)], "share of the window that is taken off", path, [beta], (0, 1))
    return True
