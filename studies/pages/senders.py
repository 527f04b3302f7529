"""Results of the paper's page with other senders and proxies, and of the slides' page over five links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.intervals import span
from bentpipe.study.markdown import literal, several, table, trials
from bentpipe.study.quantiles import median_of
from bentpipe.workload.http import TITLES

from .runs import (
    OPERATORS,
    TUNNELLED,
    PageRuns,
    has_proxies,
    http,
    is_tunnelled,
    loss,
    orbit,
    seconds,
    shown_loss,
)

_COLUMNS = ("rs_s", "fcp_s", "plt_s")
_WORDS = """The slides say in words what they saw: without a VPN, through the operators' proxies, HTTP/1.1 was
poor, HTTP/2 good and HTTP/3 mediocre; with a VPN, past the proxies, HTTP/1.1 and HTTP/2 were poor and HTTP/3
mediocre. Here *proxies* are configuration D of Kuhn 2020 at both ends of the satellite, and *direct* is TCP
past them. Page load times in seconds, medians; the links differ in their rates alone, but for the last."""

_TUNNELLED = """The same through WireGuard, as the slides had it, and without it, TCP then through the proxies
and HTTP/3 direct. In real time, where tunnels are; {trials} of each:"""
# The slides' words: the version of HTTP, whether through the VPN, and how it was.
_SAID = (
    ("h1", False, "poor"),
    ("h2", False, "good"),
    ("h3", False, "mediocre"),
    ("h1", True, "poor"),
    ("h2", True, "poor"),
    ("h3", True, "mediocre"),
)


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
    yield _by_link(here)
    real = [one for name in TUNNELLED for one in runs.of_campaign(name)]
    if real:
        yield _TUNNELLED.format(trials=trials({len(one.records) for one in real}))
        yield _by_link(sorted(real, key=http))
        yield " ".join(filter(None, (_beside_words(real, said) for said in _SAID)))


def _by_link(cells: Sequence[Cell]) -> str:
    ways = list(dict.fromkeys(_way(one) for one in cells))
    links = dict.fromkeys(map(orbit, cells))
    return table(["link", *ways], [[link, *(_of_way(cells, link, way) for way in ways)] for link in links])


def _beside_words(cells: Sequence[Cell], said: tuple[str, bool, str]) -> str:
    """The range of the medians over the links, beside the slides' word for it; "" without such trials."""
    version, has_vpn, word = said
    mine = [one for one in cells if http(one) == TITLES[version] and is_tunnelled(one) == has_vpn]
    through = "With the VPN" if has_vpn else "Without it"
    times = [time for one in mine if (time := median_of(one, "plt_s")) is not None]
    if not times:
        return ""
    failed = sum(one.failures.total() for one in mine)
    without = f", without {several(failed, 'trial')} that failed" if failed else ""
    return f"{through} {TITLES[version]} takes {span(times)} s{without} (the slides: {word})."


def _way(cell: Cell) -> str:
    if is_tunnelled(cell):
        return f"{http(cell)}, WireGuard"
    if http(cell) == TITLES["h3"]:
        return f"{http(cell)}, {literal(cell.key.server)}"
    return f"{http(cell)}, {'proxies' if has_proxies(cell) else 'direct'}"


def _of_way(cells: Sequence[Cell], link: str, way: str) -> str:
    found = [one for one in cells if orbit(one) == link and _way(one) == way]
    return marked(seconds(found[0], "plt_s"), found[0]) if found else "-"
