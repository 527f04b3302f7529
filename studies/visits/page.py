"""The page on visits: what session tickets, early data and a cache save a page behind a satellite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.trial_marks import marked
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.markdown import listed, number, path, several, table, trials
from bentpipe.study.quantiles import median_of
from bentpipe.study.source import Source, pooled
from bentpipe.testbed import SIM
from bentpipe.workload.page.visit import FIRST, VISITS

from . import answer
from .settings import VisitSetting, settings, visit_of

_TEXT = """How long a page takes behind a satellite when the browser has been there before. On a visit that
is *resumed* it has a session ticket; on one that is *early* its first request is sent as early data, before
the handshake is complete; what is *cached* it does not request
([rules](../../docs/reference/pages.md#visits)). With a ticket a stack keeps more: noq and quinn have the
server's address token, which lets the server send more than three times what it has received before the
client's address is validated. {}"""
_TABLE = """Seconds from the client's first packet until the response begins, and until all of the page has
arrived (RS / PLT), medians; and the number of requests without a cache and with one. In brackets how many
trials failed."""
_STEPS = "Page load time with the step / without it, and the seconds that it saves:"
_HEAD = ("page", "requests", "HTTP", "client → server", *VISITS)


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its picture to `folder`. BentpipeError if the runs have no pages on later visits."""
    known = [one for one in cells(pooled(runs)) if visit_of(one) is not None]
    found = settings(known, runs)
    if not any(visit != FIRST and cell.ok for one in found for visit, cell in one.cells.items()):
        raise runs[0].refused("it has no pages on later visits", "study visits")
    front = answer.front(found, folder)
    parts = [*front.parts(), "## What was run", _TEXT.format(_testbeds(found)), answer.HOW]
    parts += [
        "## What each step saves",
        *folded(several(len(found), "setting"), _STEPS, answer.steps_table(found)),
    ]
    parts += ["## Times of each visit", _TABLE]
    for scenario in dict.fromkeys(one.key.scenario for one in found):
        mine = [_row(one) for one in found if one.key.scenario == scenario]
        parts += [f"### {path(scenario)}", *folded(several(len(mine), "setting"), table(_HEAD, mine, left=4))]
    parts += closing.of_all(runs)
    file = folder / "visits.md"
    file.write_text(markdown.page(parts))
    return [file, *([] if front.picture is None else [front.picture.file])]


def _testbeds(found: Sequence[VisitSetting]) -> str:
    """How many trials there are of each visit, in virtual and in real time."""
    parts = []
    for is_virtual, where in ((True, "in virtual time"), (False, "in real time")):
        mine = [one for one in found if (one.key.testbed == SIM.name) == is_virtual]
        counts = {len(cell.records) for one in mine for cell in one.cells.values()}
        if counts:
            clients = listed(dict.fromkeys(one.key.client for one in mine))
            parts.append(f"{where} {trials(counts)} with {clients} as the client")
    return f"Of each visit there are {'; '.join(parts)}."


def _row(one: VisitSetting) -> list[str]:
    return [
        one.visit.name,
        _requests(one.cells.values()),
        one.http.removeprefix("HTTP/"),
        one.pair,
        *(_times(one.cells.get(visit)) for visit in VISITS),
    ]


def _requests(cells: Iterable[Cell]) -> str:
    counts = {len(found.page.resource) for one in cells if (found := visit_of(one)) is not None}
    return " / ".join(str(count) for count in sorted(counts, reverse=True))


def _times(one: Cell | None) -> str:
    if one is None:
        return ""
    failed = one.failures.total()
    also = f" ({failed})" if failed else ""
    return marked(" / ".join(number(median_of(one, column)) for column in ("rs_s", "plt_s")) + also, one)
