"""Pages in virtual time beside the same pages in browsers, over the same links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.markdown import table, trials
from bentpipe.study.quantiles import median_of

from .runs import BESIDE, BROWSERS, PageRuns, http, orbit, seconds

_TEXT = """The same pages in real time, in browsers that ask Caddy for them over emulated links: medians of
{}, in brackets the quartiles where they differ by more than 2 %. Virtual time has the same Caddy, in a
guest; its clients are noq over HTTP/3 and Linux's TCP. A browser's FCP is when it painted, that of virtual
time when it could have."""
_COLUMNS = {"rs_s": "RS", "fcp_s": "FCP", "plt_s": "PLT"}

Row = tuple[str, str]  # page and version of HTTP


def section(runs: PageRuns) -> Iterator[str]:
    """The section; nothing if one of its runs is not there."""
    real, virtual = runs.of_campaign(BROWSERS), runs.of_campaign(BESIDE)
    if not real or not virtual:
        return
    yield "## Beside browsers"
    yield _TEXT.format(trials({len(one.records) for one in real}))
    browsers = list(dict.fromkeys(one.key.client for one in real))
    for scenario in dict.fromkeys(map(orbit, real)):
        columns = {"virtual": _rows(virtual, scenario)} | {
            name: _rows([one for one in real if one.key.client == name], scenario) for name in browsers
        }
        yield _table(scenario, columns)
        for name in browsers:
            yield _agreement(
                f"{labels.variant(name).stack} over {scenario}", columns["virtual"], columns[name]
            )


def _rows(cells: Sequence[Cell], scenario: str) -> dict[Row, Cell]:
    return {_row(one): one for one in cells if orbit(one) == scenario and one.ok}


def _row(one: Cell) -> Row:
    return one.key.workload.split(":")[1], http(one)


def _table(scenario: str, columns: dict[str, dict[Row, Cell]]) -> str:
    head = [scenario, *(f"{title}, {name}" for title in _COLUMNS.values() for name in columns)]
    rows = []
    for row in dict.fromkeys(row for found in columns.values() for row in found):
        shown = [
            marked(seconds(found[row], column), found[row]) if row in found else "-"
            for column in _COLUMNS
            for found in columns.values()
        ]
        rows.append([", ".join(row), *shown])
    return table(head, rows)


def _agreement(name: str, virtual: dict[Row, Cell], real: dict[Row, Cell]) -> str:
    """The agreement of page load times, and of the order of HTTP versions."""
    both = {row: real[row] for row in virtual if row in real}
    shares = []
    for row, one in both.items():
        ours, theirs = median_of(virtual[row], "plt_s"), median_of(one, "plt_s")
        if ours and theirs:
            shares.append(theirs / ours)
    if not shares:
        return f"{name}: nothing to compare."
    pages = list(dict.fromkeys(page for page, _ in both))
    same = [page for page in pages if _order(virtual, page, both) == _order(real, page, both)]
    low, high = min(shares), max(shares)
    return (
        f"{name}: page load times are {low:.2f} to {high:.2f} times those of virtual time, and the versions "
        f"of HTTP come in the same order for {len(same)} of {len(pages)} pages."
    )


def _order(cells: dict[Row, Cell], page: str, both: dict[Row, Cell]) -> list[str]:
    """The versions of HTTP, fastest first."""
    versions = [version for one, version in both if one == page]
    return sorted(versions, key=lambda version: median_of(cells[page, version], "plt_s") or 0.0)
