"""The page on pages: how long one takes over each version of HTTP, behind proxies and without, beside what
two papers measured with browsers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.study import footing, markdown
from bentpipe.study.markdown import literal, table, trials
from bentpipe.study.quantiles import median
from bentpipe.study.source import Source
from bentpipe.workload.page.visit import TITLES

from . import glance, published
from .published import Published, TableRow
from .runs import (
    H1,
    H3,
    LOSS,
    OPERATORS,
    PARALLEL,
    QUIC,
    TCP,
    PageRuns,
    has_proxies,
    http,
    known_s,
    loss,
    orbit,
    seconds,
)

_MEASURES = {"rs_s": "Response start", "fcp_s": "First contentful paint", "plt_s": "Page load time"}
_TEXT = """How long a page takes behind a satellite, over HTTP/1.1, HTTP/2 and HTTP/3, in virtual time: a
client with a browser's rules of fetching, real stacks below it. Two papers measured the like with Chromium,
over an emulated satellite and over five operators."""
_DIFFERS = """- **The page.** The source's is the ETSI Kepler reference page: 75 objects, about 880 kB. Which
  object is how large, of which type, and what leads to it is not stated: here it is drawn from a seed
  (`bentpipe page show kosek`).
- **The client** is no browser: it parses nothing, scripts are times that pass, and first contentful paint is
  when what blocks rendering is there, not when something was painted.
- **The stacks.** The source has Chromium's QUIC and H2O's quicly, quicly in the proxies, Linux 5.4's TCP and
  PEPsal. Here these are noq, Bentpipe's proxies, and Linux 6.12's TCP. HTTP/1.1 is in the clear in both.
- **The link.** The source's satellite is OpenSAND, here it is a model with the same rates, one
  bandwidth-delay product of queue, and losses that are independent from packet to packet.
- **A browser's own work** is in the source's times. Its response over HTTP/3 begins 0.2 s later over LEO than
  two round trips take, and with proxies 1.2 s later, before anything of the page matters."""
_AT_ONCE = """The source says that its browser had 6 streams at once. HTTP/3 itself has no such limit. So
the page is loaded once more with so many requests under way at one time, from servers with an initial window
of 10 and of 32 packets. Seconds; without losses a trial repeats, so each is one trial."""
_WORDS = """The slides say in words what they saw: without a VPN, through the operators' proxies, HTTP/1.1 was
poor, HTTP/2 good and HTTP/3 mediocre; with a VPN, past the proxies, HTTP/1.1 and HTTP/2 were poor and HTTP/3
mediocre. Here *proxies* are configuration D of Kuhn 2020 at both ends of the satellite, and *direct* is TCP
past them. Page load times in seconds, medians."""


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError unless the runs are those of the study."""
    found, said = PageRuns.of(runs), published.load()
    parts = ["# Pages over satellites", _TEXT, *glance.section(found, said), *_table_two(found, said)]
    parts += _at_once(found, said)
    parts += _at_loss(found, said)
    parts += _others(found, QUIC, "Other senders and proxies of QUIC")
    parts += _others(found, TCP, "HTTP/1.1 and HTTP/2 over TLS")
    parts += _operators(found)
    parts += footing.of_all(runs, {"Kosek": said.source, "Deutschmann": said.slides})
    file = folder / "pages.md"
    file.write_text(markdown.page(parts))
    return [file]


def _table_two(runs: PageRuns, said: Published) -> Iterator[str]:
    yield "## A paper's table again"
    counts = {len(one.records) for name in (H3, H1) for one in runs.of_campaign(name)}
    yield (
        f"Table II of Kosek et al.: medians in seconds, here / published, of {trials(counts)} here and "
        f"{said.iterations} there; in brackets the quartiles here where they differ. What differs from the "
        "source, and so limits what the numbers say of each other:"
    )
    yield _DIFFERS
    for column, title in _MEASURES.items():
        head = [title, *said.losses]
        yield table(head, [[_row_title(row), *_row(runs, said, row, column)] for row in said.table])


def _row_title(row: TableRow) -> str:
    return f"{row.scenario}, {TITLES[row.http]}{', proxies' if row.proxies else ''}"


def _row(runs: PageRuns, said: Published, row: TableRow, column: str) -> Iterator[str]:
    for at, theirs in zip(said.losses, getattr(row, column.removesuffix("_s")), strict=True):
        cell = runs.of_table(row.scenario, row.http, row.proxies, at.replace(" ", ""))
        yield f"{seconds(cell, column) if cell else '-'} / {theirs / 1000:.2f}"


def _at_once(runs: PageRuns, said: Published) -> Iterator[str]:
    here = runs.of_campaign(PARALLEL)
    if not here:
        return
    yield "## Requests at once"
    yield _AT_ONCE
    for scenario in dict.fromkeys(map(orbit, here)):
        mine = [one for one in here if orbit(one) == scenario]
        servers = list(dict.fromkeys(one.key.server for one in mine))
        head = [scenario, *(f"{title}, {_window(one)}" for one in servers for title in ("FCP", "PLT"))]
        rows = []
        for client in dict.fromkeys(one.key.client for one in mine):
            by_server = {one.key.server: one for one in mine if one.key.client == client}
            shown = [seconds(by_server[one], name) for one in servers for name in ("fcp_s", "plt_s")]
            rows.append([_most(client), *shown])
        (row,) = [
            one for one in said.table if (one.scenario, one.http, one.proxies) == (scenario, "h3", False)
        ]
        theirs = [f"{one[0] / 1000:.2f}" for one in (row.fcp, row.plt)]
        rows.append(["published", *theirs * len(servers)])
        yield table(head, rows)
        yield _nearest(scenario, mine, row)


def _at_loss(runs: PageRuns, said: Published) -> Iterator[str]:
    here = runs.of_campaign(LOSS)
    if not here:
        return
    yield "## Proxies at 1 % of loss"
    direct, proxies = (
        next(one for one in said.table if (one.scenario, one.http, one.proxies) == ("geo-tum", "h3", has))
        for has in (False, True)
    )
    without, through = (f"{one.plt[-1] / 1000:.2f} s" for one in (direct, proxies))
    yield (
        f"Over GEO with 1 % of loss the source's proxies bring the page sooner: after {without} without, "
        f"after {through} with them. Here those with NewReno do not. Which of two things that differ turns "
        "it: what the client has under way at once, or the congestion control of the proxies? Medians and "
        f"quartiles in seconds, of {trials({len(one.records) for one in here})} of each."
    )
    rows = []
    for one in here:
        chain = labels.treatment(one.key.treatment).chain
        options = labels.variant(chain.partition(",")[0]).options if chain else {}
        name = f"proxies with {options.get('cc', '')}" if options else "direct"
        rows.append([_most(one.key.client), name, seconds(one, "fcp_s"), seconds(one, "plt_s")])
    yield table(["requests at once", "", "FCP", "PLT"], rows, left=2)


def _window(server: str) -> str:
    return f"{labels.variant(server).options.get('iw', '10')} packets"


def _most(client: str) -> str:
    return labels.variant(client).options.get("parallel", "as many as the server allows")


def _nearest(scenario: str, cells: Sequence[Cell], row: TableRow) -> str:
    """Which setting comes nearest to what was published, in both times."""

    def apart(one: Cell) -> float:
        both = ((median(known_s(one, "fcp_s")), row.fcp[0]), (median(known_s(one, "plt_s")), row.plt[0]))
        return max(float("inf") if ours is None else abs(1000 * ours / theirs - 1) for ours, theirs in both)

    best = min(cells, key=apart)
    return (
        f"Over {scenario} the paper's two times are nearest to {_most(best.key.client)} requests at once and "
        f"an initial window of {_window(best.key.server)}: neither is further off than "
        f"{100 * apart(best):.0f} %."
    )


def _others(runs: PageRuns, campaign: str, title: str) -> Iterator[str]:
    here = runs.of_campaign(campaign)
    if not here:
        return
    yield f"## {title}"
    counts = trials({len(one.records) for one in here})
    yield f"RS, FCP and PLT in seconds by loss: medians of {counts} of each, in brackets the quartiles."
    losses = list(dict.fromkeys(map(loss, here)))
    for scenario in dict.fromkeys(map(orbit, here)):
        mine = [one for one in here if orbit(one) == scenario]
        head = [f"{scenario}: server, proxies", *losses]
        rows: dict[str, dict[str, str]] = {}
        for one in mine:
            through = one.key.treatment if has_proxies(one) else "direct"
            name = literal(f"{http(one)}, {one.key.server}, {through}")
            shown = " / ".join(seconds(one, column) for column in _MEASURES)
            rows.setdefault(name, {})[loss(one)] = shown
        yield table(head, [[name, *(by.get(at, "-") for at in losses)] for name, by in rows.items()])


def _operators(runs: PageRuns) -> Iterator[str]:
    here = [one for name in OPERATORS for one in runs.of_campaign(name)]
    if not here:
        return
    yield "## Five operators' links"
    yield _WORDS
    ways = list(dict.fromkeys(_way(one) for one in here))
    rows = [
        [scenario, *(_of_way(here, scenario, way) for way in ways)]
        for scenario in dict.fromkeys(map(orbit, here))
    ]
    yield table(["link", *ways], rows)


def _way(cell: Cell) -> str:
    if http(cell) == TITLES["h3"]:
        return f"{http(cell)}, {literal(cell.key.server)}"
    return f"{http(cell)}, {'proxies' if has_proxies(cell) else 'direct'}"


def _of_way(cells: Sequence[Cell], scenario: str, way: str) -> str:
    found = [one for one in cells if orbit(one) == scenario and _way(one) == way]
    return seconds(found[0], "plt_s") if found else "-"
