"""The tables of pages at the end of a run: per scenario and page, a line for each way of loading it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from rich.table import Table

from bentpipe import workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.plan import treatments
from bentpipe.runs.records import Record
from bentpipe.workload.page.visit import TITLES, PageVisit

LEGEND = (
    "seconds from the client's first packet, medians of successful trials:\n"
    "response start, first contentful paint, DOM content, page load time;\n"
    "and the most requests at once, likewise; (n!): n trials failed"
)


def tables(records: Sequence[Record]) -> Iterator[tuple[str, str, Table]]:
    """Of records of pages a table for each scenario and page, with both their names. What was not started has
    no line.
    """
    started = [one for one in cells(records) if set(one.failures) != {"unsupported"} or one.ok]
    between = {one.key.treatment for one in started}
    for key in dict.fromkeys(map(_key, started)):
        table = Table(box=None, pad_edge=False, padding=(0, 1))
        for name in ("HTTP", "client → server", *(["treatment"] if len(between) > 1 else [])):
            table.add_column(name, overflow="fold")
        for name in ("RS", "FCP", "DOM", "PLT", "at once"):
            table.add_column(name, justify="right")
        for one in started:
            if _key(one) == key:
                through = [treatments.short(one.key.treatment, between)] if len(between) > 1 else []
                pair = f"{one.key.client} → {one.key.server}"
                table.add_row(TITLES[_page(one).http].removeprefix("HTTP/"), pair, *through, *_times(one))
        scenario, page, flows = key
        yield scenario, f"page {page}{''.join(f' beside {one}' for one in flows)}", table


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
