"""The tables of pages and live streams at the end of a run: for each scenario, a line for each way of asking
for it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.table import Table

from bentpipe import labels, workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.plan import treatments
from bentpipe.runs.records import Record
from bentpipe.workload import shown_time
from bentpipe.workload.http import TITLES, HttpWorkload
from bentpipe.workload.live import LiveSession
from bentpipe.workload.page.visit import PageVisit

_LONGEST = 20  # of a treatment in a table; a longer one has a number there


@dataclass(frozen=True)
class _Column:
    """A measure of records: its name there, and how a median of it is written."""

    measure: str
    written: Callable[[float], str] = "{:.2f}".format

    def of(self, cell: Cell) -> str:
        values = [getattr(record, self.measure) for record in cell.ok]
        known = [value for value in values if value is not None]
        return self.written(statistics.median(known)) if known else "-"


@dataclass(frozen=True)
class _Form:
    """What tables of a kind of workload show."""

    kind: type[HttpWorkload]
    columns: Mapping[str, _Column]
    legend: str


_MEDIANS = "medians of successful trials"
_PAGES = _Form(
    PageVisit,
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


@dataclass(frozen=True)
class HttpTables:
    """A table for each scenario and page, or live stream, of trials that were started."""

    form: _Form
    cells: Sequence[Cell]

    @classmethod
    def of(cls, records: Iterable[Record]) -> list[HttpTables]:
        """Those of some records: of pages, and of live streams."""
        records = list(records)
        return [cls(form, _started(form.kind, records)) for form in (_PAGES, _LIVE)]

    def __iter__(self) -> Iterator[tuple[str, str, Table]]:
        """Scenario, what was asked for, and the table of both."""
        for key in dict.fromkeys(map(_key, self.cells)):
            scenario, what, flows = key
            beside = "".join(f" beside {one}" for one in flows)
            yield scenario, f"{what}{beside}", self._table([one for one in self.cells if _key(one) == key])

    @property
    def legend(self) -> str:
        """What the tables do not say themselves; empty if there are none."""
        if not self.cells:
            return ""
        long = [f"\n{name}: {text}" for text, name in self._treatments.items() if name.endswith(")")]
        return self.form.legend + "".join(long)

    @cached_property
    def _treatments(self) -> dict[str, str]:
        """What tables call them."""
        between = list(dict.fromkeys(one.key.treatment for one in self.cells))
        names = {text: treatments.short(text, between) for text in between}
        long = [text for text, name in names.items() if len(name) > _LONGEST]
        return names | {
            text: f"{labels.treatment(text).kind} ({number})" for number, text in enumerate(long, start=1)
        }

    def _table(self, shown: Sequence[Cell]) -> Table:
        several = len(self._treatments) > 1
        table = Table(box=None, pad_edge=False, padding=(0, 1))
        for name in ("HTTP", "client → server", *(["treatment"] if several else [])):
            table.add_column(name, overflow="fold")
        for name in self.form.columns:
            table.add_column(name, justify="right")
        for one in shown:
            version = TITLES[_workload(one).http].removeprefix("HTTP/")
            through = [self._treatments[one.key.treatment]] if several else []
            table.add_row(version, f"{one.key.client} → {one.key.server}", *through, *self._measures(one))
        return table

    def _measures(self, one: Cell) -> list[str]:
        *times, last = self.form.columns.values()
        if not one.ok:
            return [*("" for _ in times[:-1]), one.failures.most_common(1)[0][0].replace("_", " "), ""]
        failed = sum(one.failures.values())
        shown = [column.of(one) for column in times]
        shown[-1] += f" ({failed}!)" if failed else ""
        return [*shown, last.of(one)]


def is_shown(record: Record) -> bool:
    """Whether a record's trial stands in these tables."""
    return isinstance(workload.known(record.workload), HttpWorkload)


def _started(kind: type[HttpWorkload], records: Iterable[Record]) -> list[Cell]:
    these = (one for one in records if isinstance(workload.known(one.workload), kind))
    return [one for one in cells(these) if one.ok or set(one.failures) != {"unsupported"}]


def _key(one: Cell) -> tuple[str, str, tuple[str, ...]]:
    """What has a table: scenario, what is asked for, and the flows beside it."""
    found = _workload(one)
    what = f"page {found.name}" if isinstance(found, PageVisit) else _stream(found)
    return one.key.scenario, what, found.flows


def _stream(found: HttpWorkload) -> str:
    assert isinstance(found, LiveSession)
    return f"live stream of {shown_time(found.lasts_ms)}"


def _workload(one: Cell) -> HttpWorkload:
    found = workload.known(one.key.workload)
    assert isinstance(found, HttpWorkload)
    return found
