"""The source's emulated network: what the receiver's flow control window does to a slow start."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from bentpipe import labels
from bentpipe.runs.records import Record
from bentpipe.study import curves
from bentpipe.study.curves import MeanCurve
from bentpipe.study.markdown import number, several, table
from bentpipe.study.slow_starts import SlowStartTrial
from bentpipe.study.source import Source

FIGURE = "search-flow-control.svg"
_DRAWN = (16, 64, 256)  # MB
_POINTS = 4  # of the course, taken together
_TEXT = """Sections 4.5 and 4.6, figures 5 to 7: over an emulated network of 150 Mbit/s and 300 ms each
way, with 36 MB of queue that overflow, the source found that quicly's own flow control window of 16 MB
held its sender back, so that no packet was ever lost; with 256 MB the congestion controller was in
charge. Here are a file of 200 MB, standard slow start and no pacing, {trials} for each window: the path
repeats."""
_COLUMNS = """*In flight*: the most at one time. The path holds 11.25 MB, and its queue 36 MB more."""
_SPIKES = """In the source's figure 6 the round-trip time of the smallest window comes in spikes, since
quicly grants more only when half of the window is used, and the sender stands still until then. noq
grants as it reads, so here the sender is held at the window, without spikes: the rate is the link's, and
the queue stays as long as the window leaves it."""


def windowed(runs: Sequence[Source]) -> list[Record]:
    """The records of the runs whose clients differ in their window, by window."""
    found = [record for one in runs for record in one.records if _window_mb(record)]
    return sorted(found, key=lambda one: (_window_mb(one), one.iteration))


def _window_mb(record: Record) -> int:
    text = labels.variant(record.client).options.get("window", "")
    return int(text) // 1_000_000 if text.isdigit() else 0


def sections(runs: Sequence[Source], files: dict[str, Path]) -> list[str]:
    """The section; none without such a run."""
    records = windowed(runs)
    if not records:
        return []
    sizes = [_window_mb(one) for one in records]
    rows = [_row(one) for one in records]
    head = ["window", "whole file", "in flight", "longest round trip", "dropped", "first loss noticed"]
    shown = (
        [f"![Rate of arrival, by flow control window]({files['windows'].name})"] if "windows" in files else []
    )
    text = _TEXT.format(trials=several(max(map(sizes.count, sizes)), "trial"))
    return ["## The flow control window", text, table(head, rows), _COLUMNS, _SPIKES, *shown]


def _row(record: Record) -> list[str]:
    def told(value: float | None, factor: float, unit: str) -> str:
        return number(value and value * factor, 1, f" {unit}")

    return [
        f"{_window_mb(record)} MB",
        told(record.completion_s, 1, "s"),
        told(record.in_flight_max_bytes, 1e-6, "MB"),
        told(record.rtt_max_ms, 1e-3, "s"),
        "-" if record.forward_queue_drops is None else str(record.forward_queue_drops),
        told(SlowStartTrial(record).first_loss_s, 1, "s"),
    ]


def draw(runs: Sequence[Source], path: Path) -> bool:
    """The rate of arrival over time for some windows; False if there is nothing to be drawn."""
    records = [one for one in windowed(runs) if one.iteration == 1 and one.received_bytes]
    made = [
        _course(one, number)
        for number, one in enumerate(each for each in records if _window_mb(each) in _DRAWN)
    ]
    if not made:
        return False
    curves.quartiles(made, ("time (s)", "arriving (Mbit/s), one trial each"), path)
    return True


def _course(record: Record, number: int) -> MeanCurve:
    """The mean rate over every few points of the course."""
    step, points = record.received_step_s * _POINTS, [0, *record.received_bytes][::_POINTS]
    rates = [(later - one) * 8e-6 / step for one, later in itertools.pairwise(points)]
    times = [(place + 0.5) * step for place in range(len(rates))]
    return MeanCurve(f"{_window_mb(record)} MB", times, [[rate] for rate in rates], number)
