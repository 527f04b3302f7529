"""The page's findings in a few lines, each computed from the runs that it is of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.study.quantiles import median
from bentpipe.workload.page.visit import TITLES

from .published import Published
from .runs import NONE, OPERATORS, PARALLEL, QUIC, PageRuns, has_proxies, http, known_s, loss, orbit, seconds

_GEO = "geo-tum"


def section(runs: PageRuns, said: Published) -> Iterator[str]:
    """The section; nothing of runs that are not there."""
    yield "## At a glance"
    lines = [*_as_published(runs, said), *_at_once(runs), *_ours(runs), *_operators(runs)]
    yield "\n".join(f"- {line}" for line in lines)


def plt_s(cell: Cell | None) -> str:
    """The median page load time, and the quartiles where they differ."""
    middle, space, quartiles = ("-" if cell is None else seconds(cell, "plt_s")).partition(" ")
    return f"{middle} s{space}{quartiles}"


def _as_published(runs: PageRuns, said: Published) -> Iterator[str]:
    for row in said.table:
        if row.scenario == _GEO and not row.proxies:
            here = runs.of_table(_GEO, row.http, False, NONE)
            yield (
                f"Over GEO without losses or proxies the page is there over {TITLES[row.http]} after "
                f"{plt_s(here)}; published are {row.plt[0] / 1000:.2f} s."
            )


def _at_once(runs: PageRuns) -> Iterator[str]:
    mine = {
        labels.variant(one.key.client).options.get("parallel"): one
        for one in runs.of_campaign(PARALLEL)
        if orbit(one) == _GEO and labels.variant(one.key.server).options.get("iw") == "32"
    }
    if {"8", None} <= mine.keys():
        few, all_of_them = plt_s(mine["8"]), plt_s(mine[None])
        yield (
            "What the client has under way at once decides more than the version of HTTP: from a server with "
            f"an initial window of 32 packets {few} with 8 requests, {all_of_them} with as many as there are."
        )


def _ours(runs: PageRuns) -> Iterator[str]:
    for at, words in ((NONE, "without losses"), ("1%", "with 1 % of loss")):
        here = [one for one in runs.of_campaign(QUIC) if (orbit(one), loss(one)) == (_GEO, at)]
        cubic = _first(here, lambda one: "cubic:iw=10" in one.key.server and not has_proxies(one))
        trains = _first(here, lambda one: "trains" in one.key.server and not has_proxies(one))
        proxies = _first(here, lambda one: "cubic:iw=10" in one.key.server and "trains" in one.key.treatment)
        if cubic:
            yield (
                f"Over GEO {words} HTTP/3 takes {plt_s(cubic)} with CUBIC, {plt_s(trains)} with packet "
                f"trains and an avoidance that tolerates losses, {plt_s(proxies)} with CUBIC behind proxies "
                "that have both."
            )


def _operators(runs: PageRuns) -> Iterator[str]:
    here = [one for name in OPERATORS for one in runs.of_campaign(name)]
    plain = [one for one in here if "trains" not in one.key.server]
    links = [one for one in dict.fromkeys(map(orbit, here)) if not one.startswith("starlink")]
    for proxies, words in ((True, "behind proxies"), (False, "past them")):
        orders = {
            _order(one for one in plain if orbit(one) == link and _is_of(one, proxies)) for link in links
        }
        if links and len(orders) == 1:
            yield f"Over {len(links)} operators' GEO links, TCP {words}, the soonest first: {orders.pop()}."


def _is_of(cell: Cell, proxies: bool) -> bool:
    """QUIC goes past proxies of TCP."""
    return http(cell) == TITLES["h3"] or has_proxies(cell) == proxies


def _order(cells: Iterable[Cell]) -> str:
    """Versions of HTTP by their page load time, the soonest first."""
    timed = [(median(known_s(one, "plt_s")) or float("inf"), http(one)) for one in cells]
    return ", ".join(version for _, version in sorted(timed))


def _first(cells: Sequence[Cell], fits: Callable[[Cell], bool]) -> Cell | None:
    return next((one for one in cells if fits(one)), None)
