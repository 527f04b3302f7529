"""Results of the paper's page with other senders and proxies, and of the slides' page over five links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.markdown import literal, table, trials
from bentpipe.workload.http import TITLES

from .runs import (
    OPERATORS,
    PageRuns,
    has_proxies,
    http,
    loss,
    orbit,
    seconds,
    shown_loss,
)

_COLUMNS = ("rs_s", "fcp_s", "plt_s")
_WORDS = """The slides say in words what they saw: without a VPN, through the operators' proxies, HTTP/1.1 was
poor, HTTP/2 good and HTTP/3 mediocre; with a VPN, past the proxies, HTTP/1.1 and HTTP/2 were poor and HTTP/3
mediocre. Here *proxies* are configuration D of Kuhn 2020 at both ends of the satellite, and *direct* is TCP
past them. Page load times in seconds, medians; the links differ in their rates alone, but for the last.
[Another page](pages-vpn.md) has the same through WireGuard, in real time."""


def section(runs: PageRuns, campaign: str, title: str) -> Iterator[str]:
    """The times of every sender and proxy of a campaign; nothing if it did not run."""
    here = runs.of_campaign(campaign)
    if not here:
        return
    counts = trials({len(one.records) for one in here})
    yield f"## {title}"
    yield (
        f"RS, FCP and PLT in seconds by loss: medians of {counts} of each, in brackets the quartiles where "
        "they differ by more than 2 %. Proxies are at both ends of the satellite, with these options; with "
        "`warm` their own connection stands before, which saves a round trip."
    )
    losses = list(dict.fromkeys(map(loss, here)))
    for scenario in dict.fromkeys(map(orbit, here)):
        rows: dict[tuple[str, ...], dict[str, str]] = {}
        for one in here:
            if orbit(one) == scenario:
                shown = marked(" / ".join(seconds(one, column) for column in _COLUMNS), one)
                rows.setdefault((http(one), literal(one.key.server), _between(one)), {})[loss(one)] = shown
        head = [scenario, "server", "proxies", *map(shown_loss, losses)]
        yield table(head, [[*name, *(by.get(at, "-") for at in losses)] for name, by in rows.items()], left=3)


def _between(cell: Cell) -> str:
    """The options that proxies at both ends have in common."""
    if not has_proxies(cell):
        return "none"
    chain = labels.treatment(cell.key.treatment).chain
    options = {proxy.partition(":")[2] for proxy in chain.split(",")}
    return literal(options.pop().replace(":", " ")) if len(options) == 1 else literal(chain)


def operators(runs: PageRuns) -> Iterator[str]:
    """The section on operators' links; nothing if their runs are not there."""
    here = [one for name in OPERATORS for one in runs.of_campaign(name)]
    if not here:
        return
    yield "## Five operators' links"
    yield _WORDS
    yield by_link([(_way(one), one) for one in here])


def by_link(cells: Sequence[tuple[str, Cell]]) -> str:
    """The table of page load times: a row for each link, a column for each name that cells have."""
    names = dict.fromkeys(name for name, _ in cells)
    links = dict.fromkeys(orbit(one) for _, one in cells)
    of = {(orbit(one), name): marked(seconds(one, "plt_s"), one) for name, one in cells}
    return table(["link", *names], [[link, *(of.get((link, name), "-") for name in names)] for link in links])


def _way(cell: Cell) -> str:
    if http(cell) == TITLES["h3"]:
        return f"{http(cell)}, {literal(cell.key.server)}"
    return f"{http(cell)}, {'proxies' if has_proxies(cell) else 'direct'}"
