"""The tables of pages at the end of a run: per scenario and page, a line for each way of loading it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.table import Table

from bentpipe import labels, workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.plan import treatments
from bentpipe.runs.records import Record
from bentpipe.workload.page.visit import TITLES, PageVisit

_LEGEND = (
    "seconds from the client's first packet, medians of successful trials:\n"
    "response start, first contentful paint, DOM content, page load time;\n"
    "and the most requests at once, likewise; (n!): n trials failed"
)
_LONGEST = 20  # of a treatment in a table; a longer one has a number there


@dataclass(frozen=True)
class PageTables:
    """A table for each scenario and page, of trials that were started."""

    cells: Sequence[Cell]

    @classmethod
    def of(cls, records: Iterable[Record]) -> PageTables:
        """Those of the pages among some records."""
        pages = (one for one in records if workload.is_page(one.workload))
        return cls([one for one in cells(pages) if one.ok or set(one.failures) != {"unsupported"}])

    def __iter__(self) -> Iterator[tuple[str, str, Table]]:
        """Scenario, page, and the table of both."""
        for key in dict.fromkeys(map(_key, self.cells)):
            scenario, page, flows = key
            beside = "".join(f" beside {one}" for one in flows)
            yield (
                scenario,
                f"page {page}{beside}",
                self._table([one for one in self.cells if _key(one) == key]),
            )

    @property
    def legend(self) -> str:
        """What the tables do not say themselves; empty if there are none."""
        if not self.cells:
            return ""
        long = [f"\n{name}: {text}" for text, name in self._treatments.items() if name.endswith(")")]
        return _LEGEND + "".join(long)

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
        for name in ("RS", "FCP", "DOM", "PLT", "at once"):
            table.add_column(name, justify="right")
        for one in shown:
            version = TITLES[_page(one).http].removeprefix("HTTP/")
            through = [self._treatments[one.key.treatment]] if several else []
            table.add_row(version, f"{one.key.client} → {one.key.server}", *through, *_times(one))
        return table


def _key(one: Cell) -> tuple[str, str, tuple[str, ...]]:
    """What has a table: scenario, page, and the flows beside it."""
    return one.key.scenario, _page(one).name, _page(one).flows


def _page(one: Cell) -> PageVisit:
    found = workload.known(one.key.workload)
    assert isinstance(found, PageVisit)
    return found


def _times(one: Cell) -> list[str]:
    failed = sum(one.failures.values())
    if not one.ok:
        return ["", "", "", one.failures.most_common(1)[0][0].replace("_", " "), ""]
    medians = [_median([getattr(record, name) for record in one.ok]) for name in
               ("rs_s", "fcp_s", "dcl_s", "plt_s")]  # fmt: skip
    at_once = [record.requests_at_once for record in one.ok if record.requests_at_once is not None]
    more = f" ({failed}!)" if failed else ""
    return [*medians[:-1], medians[-1] + more, f"{statistics.median(at_once):g}" if at_once else "-"]


def _median(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.2f}" if known else "-"
