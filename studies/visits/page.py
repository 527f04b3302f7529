"""The page on visits: what session tickets, early data and a cache save a page behind a satellite."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bentpipe import workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.trial_marks import marked
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import CellKey
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import literal, number, path, table
from bentpipe.study.quantiles import median_of
from bentpipe.study.source import Source, pooled
from bentpipe.workload.http import TITLES
from bentpipe.workload.page.visit import FIRST, VISITS, PageVisit

_TEXT = """How long a page takes behind a satellite when the browser has been there before. On a visit that
is *resumed* it has a session ticket; on one that is *early* its first request goes as early data, before the
handshake is over; what is *cached* it does not ask for
([rules](../../docs/reference/pages.md#visits)). With a ticket comes what else a stack keeps: noq and quinn
have the server's address token, so that it may answer at once with more than three times what it got. In
virtual time, with real stacks, and without losses, so that a trial repeats; browsers are in real time,
medians of three."""
_TABLE = """Seconds from the client's first packet until the response begins, and until all is there (RS /
PLT); and how many requests that takes without a cache and with one."""
_HEAD = ("page", "requests", "HTTP", "client → server", *VISITS)


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if the runs have no pages on later visits."""
    known = [one for one in cells(pooled(runs)) if _visit(one) is not None and one.ok]
    if not any(_is_later(one) for one in known):
        raise runs[0].refused("it has no pages on later visits", "study visits")
    parts = ["# Pages on first and later visits", _TEXT, "## At a glance", _glance(known), _TABLE]
    for scenario in dict.fromkeys(one.key.scenario for one in known):
        mine = [one for one in known if one.key.scenario == scenario]
        parts += [f"## {path(scenario)}", table(_HEAD, _rows(mine), left=4)]
    parts += closing.of_all(runs)
    file = folder / "visits.md"
    file.write_text(markdown.page(parts))
    return [file]


def _visit(one: Cell) -> PageVisit | None:
    found = workload.known(one.key.workload)
    return found if isinstance(found, PageVisit) else None


def _is_later(one: Cell) -> bool:
    found = _visit(one)
    return found is not None and found.visit != FIRST


def _key(one: Cell) -> CellKey:
    """The key of the first visit of the same page."""
    found = _visit(one)
    assert found is not None
    return one.key._replace(workload=str(dataclasses.replace(found, visit=FIRST)))


def _saved(one: Cell, cells: Sequence[Cell]) -> float | None:
    """Seconds of page load time that it takes less than the first visit."""
    for other in cells:
        if not _is_later(other) and _key(other) == _key(one):
            first, later = median_of(other, "plt_s"), median_of(one, "plt_s")
            return None if first is None or later is None else first - later
    return None


def _rows(cells: Sequence[Cell]) -> list[list[str]]:
    """A row for each page, version of HTTP and pair, a column for each kind of visit."""
    rows: dict[CellKey, dict[str, Cell]] = {}
    for one in cells:
        found = _visit(one)
        assert found is not None
        rows.setdefault(_key(one), {})[found.visit] = one
    return [_row(key, by_visit) for key, by_visit in rows.items()]


def _row(key: CellKey, by_visit: Mapping[str, Cell]) -> list[str]:
    found = workload.known(key.workload)
    assert isinstance(found, PageVisit)
    through = "" if key.treatment == DIRECT else f", {literal(key.treatment)}"
    return [
        found.name,
        _requests(by_visit.values()),
        TITLES[found.http].removeprefix("HTTP/"),
        f"{key.client} → {key.server}{through}",
        *(_times(by_visit.get(visit)) for visit in VISITS),
    ]


def _requests(cells: Iterable[Cell]) -> str:
    counts = {len(found.page.resource) for one in cells if (found := _visit(one)) is not None}
    return " / ".join(str(count) for count in sorted(counts, reverse=True))


def _times(one: Cell | None) -> str:
    if one is None:
        return ""
    return marked(" / ".join(number(median_of(one, column)) for column in ("rs_s", "plt_s")), one)


def _glance(cells: Sequence[Cell]) -> str:
    """For each path and version of HTTP, the least and the most that each kind of later visit saves."""
    lines = []
    for scenario, version in dict.fromkeys((one.key.scenario, _http(one)) for one in cells):
        here = [one for one in cells if (one.key.scenario, _http(one)) == (scenario, version)]
        said = [_range([median_of(one, "plt_s") for one in here if not _is_later(one)])]
        for visit in VISITS:
            saved = _range([_saved(one, here) for one in here if _is_later(one) and _is(one, visit)])
            said += [f"one that is {visit} saves {saved}"] if saved else []
        lines.append(f"- {path(scenario)}, {version}: on a first visit pages take {'; '.join(said)}.")
    return "\n".join(lines)


def _http(one: Cell) -> str:
    found = _visit(one)
    return TITLES[found.http] if found else ""


def _range(values: Sequence[float | None]) -> str:
    """The least and the largest; empty where nothing is known."""
    known = [round(value, 2) + 0.0 for value in values if value is not None]  # -0.0 + 0.0 is 0.0
    return f"{min(known):.2f} to {max(known):.2f} s" if known else ""


def _is(one: Cell, visit: str) -> bool:
    found = _visit(one)
    return found is not None and found.visit == visit
