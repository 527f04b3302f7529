"""The tables of pages, live streams and frames at the end of a run: for each scenario, a line for each way of
asking for it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.table import Table

from bentpipe import labels, workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.plan import treatments
from bentpipe.runs.records import Record
from bentpipe.workload import Workload, shown_time
from bentpipe.workload.frames import FrameViewing
from bentpipe.workload.http import TITLES, HttpWorkload
from bentpipe.workload.live import LiveSession
from bentpipe.workload.page.visit import FIRST, PageVisit

_LONGEST = 20  # of a treatment in a table; a longer one has a number there


@dataclass(frozen=True)
class _Column:
    """A measure of records: its name there, and how a median of it is written."""

    measure: str
    written: Callable[[float], str] = "{:.2f}".format

    def of(self, cell: Cell) -> str:
        values = cell.values(self.measure)
        middle = statistics.median(values) if values else math.inf
        return "-" if middle == math.inf else self.written(middle)


@dataclass(frozen=True)
class _Form:
    """The form of the tables of a kind of workload."""

    kind: type[Workload]
    carrier: str  # the head of the column that says what it is over
    marked: str  # the column that says how many trials failed
    columns: Mapping[str, _Column]
    legend: str


_MEDIANS = "medians of successful trials"
_PAGES = _Form(
    PageVisit,
    "HTTP",
    "PLT",
    {
        "RS": _Column("rs_s"),
        "FCP": _Column("fcp_s"),
        "DOM": _Column("dcl_s"),
        "PLT": _Column("plt_s"),
        "at once": _Column("requests_at_once", "{:g}".format),
    },
    f"seconds from the client's first packet, {_MEDIANS}:\n"
    "response start, first contentful paint, DOM content, page load time;\n"
    "and the most requests at once, likewise; (n!): n trials failed",
)
_LIVE = _Form(
    LiveSession,
    "HTTP",
    "stalls",
    {
        "starts": _Column("startup_s"),
        "stalls": _Column("stalls", "{:g}".format),
        "stalled": _Column("stalled_s"),
        "Mbit/s": _Column("media_rate_bps", lambda rate: f"{rate / 1e6:.2f}"),
        "changes": _Column("rate_changes", "{:g}".format),
        "behind": _Column("latency_s"),
    },
    f"{_MEDIANS}: seconds until a stream plays; how often it stalls, and for how many\n"
    "seconds in all; the mean rate of what it plays, and how often that changes; and how\n"
    "many seconds it is behind at the end; (n!): n trials failed",
)
_FRAMES = _Form(
    FrameViewing,
    "over",
    "lost",
    {
        "frames": _Column("frames", "{:g}".format),
        "late": _Column("late_frames", "{:g}".format),
        "lost": _Column("lost_frames", "{:g}".format),
        "median": _Column("frame_age_median_s", "{:.3f}".format),
        "95 %": _Column("frame_age_p95_s", "{:.3f}".format),
        "99 %": _Column("frame_age_p99_s", "{:.3f}".format),
    },
    f"{_MEDIANS}: frames that were made, that came later than their deadline, and that\n"
    "never came whole; and seconds from when they were made until half, 95 and 99 % of them\n"
    "had come whole (-: so many never did); (n!): n trials failed",
)
_FORMS = (_PAGES, _LIVE, _FRAMES)


@dataclass(frozen=True)
class WorkloadTables:
    """A table for each scenario and page, live stream or stream of frames, of trials that were started."""

    form: _Form
    cells: Sequence[Cell]

    @classmethod
    def of(cls, records: Iterable[Record]) -> list[WorkloadTables]:
        """The tables of some records, one for each kind that has tables of its own."""
        records = list(records)
        return [cls(form, _started(form.kind, records)) for form in _FORMS]

    def __iter__(self) -> Iterator[tuple[str, str, Table]]:
        """Scenario, what was asked for, and the table of both."""
        for key in dict.fromkeys(map(_key, self.cells)):
            scenario, what, flows = key
            beside = "".join(f" beside {one}" for one in flows)
            yield scenario, f"{what}{beside}", self._table([one for one in self.cells if _key(one) == key])

    @property
    def legend(self) -> str:
        """The legend of the tables; empty if there are none."""
        if not self.cells:
            return ""
        long = [f"\n{name}: {text}" for text, name in self._treatments.items() if name.endswith(")")]
        return self.form.legend + "".join(long)

    @cached_property
    def _treatments(self) -> dict[str, str]:
        """The names of treatments in tables."""
        between = list(dict.fromkeys(one.key.treatment for one in self.cells))
        names = {text: treatments.short(text, between) for text in between}
        long = [text for text, name in names.items() if len(name) > _LONGEST]
        return names | {
            text: f"{labels.treatment(text).kind} ({number})" for number, text in enumerate(long, start=1)
        }

    def _table(self, shown: Sequence[Cell]) -> Table:
        several = len(self._treatments) > 1
        table = Table(box=None, pad_edge=False, padding=(0, 1))
        for name in (self.form.carrier, "client → server", *(["treatment"] if several else [])):
            table.add_column(name, overflow="fold")
        for name in self.form.columns:
            table.add_column(name, justify="right")
        for one in shown:
            through = [self._treatments[one.key.treatment]] if several else []
            table.add_row(
                _over(_workload(one)), f"{one.key.client} → {one.key.server}", *through, *self._measures(one)
            )
        return table

    def _measures(self, one: Cell) -> list[str]:
        names = list(self.form.columns)
        marked = names.index(self.form.marked)
        if not one.ok:
            shown = ["" for _ in names]
            shown[marked] = one.failures.most_common(1)[0][0].replace("_", " ")
            return shown
        failed = sum(one.failures.values())
        shown = [column.of(one) for column in self.form.columns.values()]
        shown[marked] += f" ({failed}!)" if failed else ""
        return shown


def is_shown(record: Record) -> bool:
    """Whether a record's trial stands in these tables."""
    return isinstance(workload.known(record.workload), tuple(form.kind for form in _FORMS))


def _started(kind: type[Workload], records: Iterable[Record]) -> list[Cell]:
    these = (one for one in records if isinstance(workload.known(one.workload), kind))
    return [one for one in cells(these) if one.ok or set(one.failures) != {"unsupported"}]


def _key(one: Cell) -> tuple[str, str, tuple[str, ...]]:
    """The key of a table: scenario, workload, and the flows beside it."""
    found = _workload(one)
    match found:
        case PageVisit():
            what = f"page {found.name}"
        case LiveSession():
            what = f"live stream of {shown_time(found.lasts_ms)}"
        case FrameViewing():
            times = shown_time(found.lasts_ms), shown_time(found.deadline_ms)
            what = f"frames for {times[0]}, each of use for {times[1]}"
        case _:
            what = found.own_title
    return one.key.scenario, what, found.flows


def _over(found: Workload) -> str:
    """The protocol that carries it, and the visit, in a word each."""
    if isinstance(found, HttpWorkload):
        visit = f" {found.visit}" if isinstance(found, PageVisit) and found.visit != FIRST else ""
        return TITLES[found.http].removeprefix("HTTP/") + visit
    return found.over if isinstance(found, FrameViewing) else ""


def _workload(one: Cell) -> Workload:
    found = workload.known(one.key.workload)
    assert found is not None
    return found
