"""The page on table II as it was measured: a page in Chromium with proxies and without, beside the paper's
medians.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.trial_marks import marked
from bentpipe.plan.treatments import DIRECT
from bentpipe.study import claims as study_claims
from bentpipe.study import closing, markdown
from bentpipe.study.claims import Claim, MeasuredValue, Published
from bentpipe.study.front import folded
from bentpipe.study.intervals import span, with_quantiles
from bentpipe.study.markdown import listed, several, table, trials
from bentpipe.study.quantiles import median_of
from bentpipe.study.source import Source, pooled
from bentpipe.workload.http import TITLES

from . import browsers_answer
from .browsers_answer import ORBITS, ProxyEffect
from .published import Kosek, PageRow
from .runs import LossyPath

CAMPAIGNS = ("kosek-browsers-h3", "kosek-browsers-h1")
_MEASURES = {"rs_s": "Response start", "fcp_s": "First contentful paint", "plt_s": "Page load time"}
_H3 = "h3"

_TEXT = """Table II of the source: Chromium loads a page over geo-tum and leo-tum at four losses, over HTTP/3
and over HTTP/1.1 in the clear, with proxies and without. Here it does so in real time over emulated links,
{counts} of each setting where the source has {iterations}. QUIC's proxies complete each handshake after that
of the next hop, as there (`mode=sequential`). [Another page](../pages/pages.md) has the same table in virtual
time, with a client that is no browser."""
_DIFFERS = """- **The servers** have CUBIC and an initial window of 10 packets, as there. Over HTTP/3 the
  server is noq, and H2O there; over HTTP/1.1 it is this machine's Linux, and Linux 5.4 there.
- **The browser** is Chromium of today{at_once}. The source says 6 streams, and not why.
- **The page** is the ETSI Kepler reference page there; here its resources are drawn from a seed, with the
  source's number and total size.
- **Proxies of TCP** are PEPsal there, and Bentpipe's here."""
_BEGINS = """- **The first byte.** Behind QUIC's proxies the response starts {each}. What delays it there was
  not tried here; page load times have it in them."""
_TABLES = """Medians in seconds, ours / published; in parentheses the quartiles of ours where they differ by
more than 2 %."""
_RATIOS = """Page load time with proxies as a multiple of that without: of the source the ratio of its
medians, of ours that of geometric means, with
[its interval](../../docs/reference/study-verdicts.md#intervals-of-ratios) of 95 %."""


@dataclass(frozen=True)
class BrowserRuns:
    """The runs in browsers: their cells by row of the paper's table and loss."""

    sources: tuple[Source, ...]

    @cached_property
    def cells(self) -> dict[tuple[str, str, bool, str], Cell]:
        """By scenario, version of HTTP, whether there are proxies, and loss."""
        found = {}
        for one in cells(pooled(self.sources)):
            road = LossyPath.of(one.key.scenario)
            version = one.key.workload.rpartition(":")[2]
            found[road.scenario, version, one.key.treatment != DIRECT, road.loss] = one
        return found

    def of_row(self, row: PageRow, loss: str) -> Cell | None:
        return self.cells.get((row.scenario, row.http, row.proxies, loss))


def write(sources: Sequence[Source], known: Kosek, folder: Path) -> list[Path]:
    """Write the page of these runs and its picture to `folder`; the files, the page first."""
    runs = BrowserRuns(tuple(sources))
    effects = list(_effects(runs, known))
    front = browsers_answer.front(effects, folder)
    counts = trials({len(one.records) for one in runs.cells.values()})
    parts = [
        *front.parts(),
        "## What was run",
        _TEXT.format(counts=counts, iterations=known.iterations),
        "## Differences from the source",
        "\n".join([_DIFFERS.format(at_once=_at_once(runs)), *_begins(runs, known)]),
    ]
    if effects:
        claims = study_claims.rows([one.claim for one in effects], "of the paper's table")
        parts += ["## What proxies change", _RATIOS, study_claims.RULE]
        parts += folded(several(len(effects), "ratio"), claims)
    parts += ["## Times", _TABLES]
    for column, title in _MEASURES.items():
        parts += folded(title, _table(runs, known, column, title))
    file = folder / "kosek-browsers.md"
    file.write_text(markdown.page([*parts, *closing.of_all(sources, {"published": known.source})]))
    return [file, *([] if front.picture is None else [front.picture.file])]


def _begins(runs: BrowserRuns, known: Kosek) -> Iterator[str]:
    """When the response starts over HTTP/3 without losses, by path, with proxies and without."""
    rows = {(one.scenario, one.proxies): one for one in known.pages if one.http == _H3}
    each, loss = [], known.page_losses[0]
    for scenario, orbit in ORBITS.items():
        both = [rows[scenario, way] for way in (True, False)]
        ours = [None if (cell := runs.of_row(row, loss)) is None else median_of(cell, "rs_s") for row in both]
        if ours[0] is not None and ours[1] is not None:
            there = [row.rs[0] / 1000 for row in both]
            each.append(
                f"over {orbit} after {there[0]:.2f} s there and {ours[0]:.2f} s here (without them "
                f"{there[1]:.2f} and {ours[1]:.2f} s)"
            )
    if each:
        yield _BEGINS.format(each=listed(each))


def _at_once(runs: BrowserRuns) -> str:
    """How many requests Chromium had over HTTP/3."""
    known = [
        record.requests_at_once
        for (_, version, _, _), cell in runs.cells.items()
        for record in cell.ok
        if version == _H3 and record.requests_at_once is not None
    ]
    return f"; over HTTP/3 it had at most {span(known, 0)} requests at once" if known else ""


def _effects(runs: BrowserRuns, known: Kosek) -> Iterator[ProxyEffect]:
    """What proxies change of the page load time, at each loss."""
    rows = {(one.scenario, one.http, one.proxies): one for one in known.pages}
    for (scenario, version, has_proxies), row in rows.items():
        if not has_proxies:
            continue
        direct = rows[scenario, version, False]
        for place, loss in enumerate(known.page_losses):
            both = [runs.of_row(one, loss) for one in (row, direct)]
            if both[0] is None or both[1] is None:
                continue
            then = row.plt[place] / direct.plt[place]
            yield ProxyEffect(
                scenario, version, loss, _claim((both[0], both[1]), then, (version, scenario, loss))
            )


def _claim(both: tuple[Cell, Cell], then: float, setting: tuple[str, str, str]) -> Claim:
    """That page load times with proxies and without, those of these cells, have the paper's ratio."""
    failed = sum(one.failures.total() for one in both)
    # Those that succeed are the fast ones: no verdict stands on them.
    measured = None if failed else MeasuredValue.of(cell_ratio(both[1], both[0], "plt_s"))
    version, scenario, loss = setting
    text = f"{TITLES[version]}, {ORBITS[scenario]}, {loss} of loss"
    here = "-" if measured is None else measured.written()
    note = f"{several(failed, 'trial')} failed" if failed else ""
    return Claim(text, f"{then:.2f}", Published.ratio(then), measured, here, text, note)


def _table(runs: BrowserRuns, known: Kosek, column: str, title: str) -> str:
    rows = []
    for row in known.pages:
        cells_of_row = [_cell(runs, row, place, loss, column) for place, loss in enumerate(known.page_losses)]
        words = f"{ORBITS[row.scenario]}, {TITLES[row.http]}{', proxies' if row.proxies else ''}"
        rows.append([words, *cells_of_row])
    return table([title, *known.page_losses], rows)


def _cell(runs: BrowserRuns, row: PageRow, place: int, loss: str, column: str) -> str:
    cell = runs.of_row(row, loss)
    there = f"{getattr(row, column.removesuffix('_s'))[place] / 1000:.2f}"
    if cell is None:
        return f"- / {there}"
    failed = cell.failures.total()
    here = with_quantiles(cell.values(column), (0.25, 0.75)) + (f", {failed} failed" if failed else "")
    return marked(f"{here} / {there}", cell)
