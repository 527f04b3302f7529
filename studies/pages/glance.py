"""The page's findings in a few lines, each computed from the runs that it is of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.study.quantiles import median_of
from bentpipe.workload.http import TITLES

from .published import Published
from .runs import NONE, OPERATORS, PARALLEL, QUIC, PageRuns, has_proxies, http, loss, orbit, seconds

_GEO = "geo-tum"
_LOSSY = "1%"


def section(runs: PageRuns, said: Published) -> Iterator[str]:
    """The section; nothing of runs that are not there."""
    yield "## At a glance"
    lines = [*_as_published(runs, said), *_at_once(runs), *_ours(runs), *_operators(runs)]
    yield "\n".join(f"- {line}" for line in lines)


def _plt(cell: Cell | None) -> str:
    return "-" if cell is None else seconds(cell, "plt_s", " s")


def _as_published(runs: PageRuns, said: Published) -> Iterator[str]:
    for at, column, words in ((NONE, 0, "without losses"), (_LOSSY, -1, "with 1 % of loss")):
        for version in ("h1", "h3"):
            rows = [one for one in said.table if (one.scenario, one.http) == (_GEO, version)]
            here = [_plt(runs.of_table(_GEO, version, one.proxies, at)) for one in rows]
            theirs = [f"{one.plt[column] / 1000:.2f} s" for one in rows]
            if "-" not in here:
                yield (
                    f"Over GEO {words} {TITLES[version]} takes {' without proxies, '.join(here)} with them; "
                    f"the paper has {' and '.join(theirs)}."
                )


def _at_once(runs: PageRuns) -> Iterator[str]:
    mine = {
        labels.variant(one.key.client).options.get("parallel"): one
        for one in runs.of_campaign(PARALLEL)
        if orbit(one) == _GEO and labels.variant(one.key.server).options.get("iw") == "10"
    }
    if {"6", None} <= mine.keys():
        yield (
            f"HTTP/3 with 6 requests at once takes {_plt(mine['6'])}, HTTP/1.1 over six connections "
            f"{_plt(runs.of_table(_GEO, 'h1', False, NONE))}, HTTP/3 with all requests at once "
            f"{_plt(mine[None])}."
        )


def _ours(runs: PageRuns) -> Iterator[str]:
    for at, words in ((NONE, "without losses"), (_LOSSY, "with 1 % of loss")):
        here = [one for one in runs.of_campaign(QUIC) if (orbit(one), loss(one)) == (_GEO, at)]
        trains = _first(here, lambda one: "trains" in one.key.server and not has_proxies(one))
        proxies = _first(here, lambda one: "cubic:iw=10" in one.key.server and "trains" in one.key.treatment)
        if trains and proxies:
            yield (
                f"Over GEO {words} HTTP/3 takes {_plt(runs.of_table(_GEO, 'h3', False, at))} with CUBIC, "
                f"{_plt(trains)} with `cc=tolerant:ss=trains`, and {_plt(proxies)} with CUBIC behind proxies "
                "that have it, whose connection stands before, which saves a round trip (`mode=warm`)."
            )


def _operators(runs: PageRuns) -> Iterator[str]:
    here = [one for name in OPERATORS for one in runs.of_campaign(name)]
    plain = [one for one in here if "trains" not in one.key.server and not orbit(one).startswith("starlink")]
    for proxies, words in ((True, "behind proxies"), (False, "past them")):
        mine = [one for one in plain if has_proxies(one) == proxies or http(one) == TITLES["h3"]]
        times = {TITLES[version]: _times(mine, TITLES[version]) for version in ("h1", "h2", "h3")}
        if all(times.values()):
            shown = [f"{name} {_range(times[name])}" for name in sorted(times, key=lambda it: min(times[it]))]
            yield f"Over operators' GEO links, TCP {words}, fastest first: {', '.join(shown)}."


def _times(cells: Sequence[Cell], version: str) -> list[float]:
    """The median page load times over all links."""
    found = [median_of(one, "plt_s") for one in cells if http(one) == version]
    return [one for one in found if one is not None]


def _range(times: Sequence[float]) -> str:
    return f"{min(times):.2f} to {max(times):.2f} s"


def _first(cells: Sequence[Cell], fits: Callable[[Cell], bool]) -> Cell | None:
    return next((one for one in cells if fits(one)), None)
