"""The page on media: what a viewer of a live stream, or of frames with deadlines, sees behind a satellite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bentpipe import workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.trial_marks import marked
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import Record
from bentpipe.study import closing, markdown, sheets
from bentpipe.study.front import folded
from bentpipe.study.intervals import with_quantiles
from bentpipe.study.markdown import number, path, several, table, trials
from bentpipe.study.quantiles import median, median_of
from bentpipe.study.source import Source, pooled
from bentpipe.workload import shown_time
from bentpipe.workload.frames import FrameViewing
from bentpipe.workload.http import TITLES
from bentpipe.workload.live import LiveSession

from . import answer
from .answer import MediaCells

_MEASURES = {
    "startup_s": lambda one: one.startup_s,
    "stalled_s": lambda one: one.stalled_s,
    "media_rate_bps": lambda one: one.media_rate_bps,
    "latency_s": lambda one: one.latency_s,
    "missed_percent": answer.missed,
}
_TEXT = """What a viewer sees behind a satellite: a live stream in segments of 2 s at four rates, from which
a player chooses by what comes through ([rules](../../docs/reference/live-streams.md)), and frames, 30 a
second, each of use for a time ([rules](../../docs/reference/frames.md)). In virtual time, with real
stacks."""
_LIVE = """Medians of {}; of *stalled* and *played*, in brackets, the least and the largest where they
differ. The link carries more than the highest rate, 6 Mbit/s. The proxies send over it with CUBIC."""
_FRAMES = """Medians of {}, in brackets the least and the largest where they differ. Ages, in milliseconds,
are of frames when they came, from when they were made to their last byte: half, 95 and 99 % of all frames
are no older. A dash: so many of them never came whole."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page, its picture and its sheet to `folder`; the files, the page first. BentpipeError if the
    runs have neither live streams nor frames.
    """
    known = cells(pooled(runs))
    live = [one for one in known if isinstance(_workload(one), LiveSession) and _is_started(one)]
    frames = [one for one in known if isinstance(_workload(one), FrameViewing) and _is_started(one)]
    if not live and not frames:
        raise runs[0].refused("it has neither live streams nor frames", "study media")
    front = answer.front(MediaCells(live, frames), folder)
    sheet = folder / "media.csv"
    line = sheets.of_cells([*live, *frames], _MEASURES, sheet)
    parts = [*front.parts(), "## What was run", _TEXT, answer.HOW, line]
    parts += _tables("Live streams", _LIVE, live, _live_row, _LIVE_HEAD)
    parts += _tables("Frames", _FRAMES, frames, _frames_row, _FRAMES_HEAD)
    parts += closing.of_all(runs)
    file = folder / "media.md"
    file.write_text(markdown.page(parts))
    return [file, *([] if front.picture is None else [front.picture.file]), sheet]


def _workload(one: Cell) -> workload.Workload | None:
    return workload.known(one.key.workload)


def _is_started(one: Cell) -> bool:
    return bool(one.ok) or set(one.failures) != {"unsupported"}


def _tables(
    title: str, text: str, shown: Sequence[Cell], row: Callable[[Cell], list[str]], head: Sequence[str]
) -> Iterator[str]:
    """A section with a table for each path; nothing if there is nothing to show."""
    if not shown:
        return
    yield f"## {title}"
    yield text.format(trials({len(one.records) for one in shown}))
    for scenario in dict.fromkeys(one.key.scenario for one in shown):
        yield f"### {title}: {path(scenario)}"
        rows = [_with_marks(row(one), one) for one in shown if one.key.scenario == scenario]
        yield from folded(several(len(rows), "setting"), table(head, rows, left=_LEFT))


def _with_marks(texts: Sequence[str], one: Cell) -> list[str]:
    return [*texts[:_LEFT], *(marked(text, one) for text in texts[_LEFT:])]


_LEFT = 2  # columns of words
_LIVE_HEAD = ("HTTP", "client → server", "starts, s", "stalls", "stalled, s", "played, Mbit/s", "behind, s")
_FRAMES_HEAD = ("over", "client → server", "late, %", "lost, %", "median", "95 %", "99 %")


def _live_row(one: Cell) -> list[str]:
    found = _workload(one)
    assert isinstance(found, LiveSession)
    return [
        TITLES[found.http],
        _between(one),
        number(median_of(one, "startup_s")),
        number(median_of(one, "stalls"), 0),
        _spread(one, lambda record: record.stalled_s),
        _spread(one, lambda record: record.media_rate_bps and record.media_rate_bps / 1e6),
        number(median_of(one, "latency_s")),
    ]


def _frames_row(one: Cell) -> list[str]:
    found = _workload(one)
    assert isinstance(found, FrameViewing)
    ages = ("frame_age_median_s", "frame_age_p95_s", "frame_age_p99_s")
    return [
        f"{found.over}, {shown_time(found.deadline_ms)}",
        _between(one),
        _spread(one, lambda record: _share(record.late_frames, record)),
        _spread(one, lambda record: _share(record.lost_frames, record)),
        *(_age(one, column) for column in ages),
    ]


def _between(one: Cell) -> str:
    """Both ends, what stands between them, and how many trials failed."""
    through = "" if one.key.treatment == DIRECT else f", {one.key.treatment_label.kind}"
    failed = sum(one.failures.values())
    return f"{one.key.client} → {one.key.server}{through}" + (f", {failed} failed" if failed else "")


def _share(count: int | None, record: Record) -> float | None:
    return None if count is None or not record.frames else 100 * count / record.frames


def _age(one: Cell, column: str) -> str:
    middle = median(one.values(column))
    return "-" if middle is None or middle == math.inf else f"{1000 * middle:.0f}"


def _spread(one: Cell, measure: Callable[[Record], float | None], digits: int = 2) -> str:
    """The median, and the least and the largest where they differ by more than 2 %."""
    return with_quantiles([measure(record) for record in one.ok], (0, 1), digits)
