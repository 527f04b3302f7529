"""What was changed to find out why the page's times differ from the paper's: how many requests are under way
at once, and the congestion control of proxies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bentpipe import labels
from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.intervals import with_ends
from bentpipe.study.markdown import table, trials
from bentpipe.study.quantiles import median_of

from .published import Published, TableRow
from .runs import LOSS, PARALLEL, PageRuns, has_proxies, orbit, seconds

_AT_ONCE = """The source says that its browser had 6 streams at once. HTTP/3 itself has no such limit. So
the page is loaded once more with a limited number of requests under way at one time, from servers with an
initial window of 10 and of 32 packets. Seconds; without losses a trial repeats, so each is one trial."""
_NO_MEASUREMENT = """What is nearest is the best of these settings on two times of a page whose sizes are
drawn here, and it is another one over each orbit: so it shows how much hangs on requests at once, and
measures nothing of the source's browser."""
_AT_LOSS = """Over GEO with 1 % of loss the source's proxies bring the page sooner: after {} without them,
after {} with them. What is changed here is what the client has under way at once, from a server with an
initial window of 32 packets, and the congestion control of the proxies. Medians and quartiles in seconds,
of {} of each. The last column is how many times as long the page takes as without proxies, of geometric
means, with [its interval](../../docs/reference/study-verdicts.md#intervals-of-ratios) of 95 %. One that
contains 1 says neither that proxies help nor that they harm."""


def at_once(runs: PageRuns, said: Published) -> Iterator[str]:
    """The section on requests at once; nothing if its run is not there."""
    here = runs.of_campaign(PARALLEL)
    rows = {one.scenario: one for one in said.table if (one.http, one.proxies) == ("h3", False)}
    scenarios = [one for one in dict.fromkeys(map(orbit, here)) if one in rows]
    if not scenarios:
        return
    yield "## Requests at once"
    yield _AT_ONCE
    for scenario in scenarios:
        mine = [one for one in here if orbit(one) == scenario]
        yield _by_requests(scenario, mine, rows[scenario])
        yield _nearest(scenario, mine, rows[scenario])
    yield _NO_MEASUREMENT


def _by_requests(scenario: str, cells: Sequence[Cell], row: TableRow) -> str:
    servers = list(dict.fromkeys(one.key.server for one in cells))
    head = [scenario, *(f"{title}, {_window(one)}" for one in servers for title in ("FCP", "PLT"))]
    rows = []
    for client in dict.fromkeys(one.key.client for one in cells):
        by_server = {one.key.server: one for one in cells if one.key.client == client}
        shown = [
            marked(seconds(by_server[server], name), by_server[server]) if server in by_server else "-"
            for server in servers
            for name in ("fcp_s", "plt_s")
        ]
        rows.append([_most(client), *shown])
    theirs = [f"{one[0] / 1000:.2f}" for one in (row.fcp, row.plt)]
    return table(head, [*rows, ["published", *theirs * len(servers)]])


def _nearest(scenario: str, cells: Sequence[Cell], row: TableRow) -> str:
    """Which setting comes nearest to what was published, in first paint and load time."""

    def apart(one: Cell) -> float:
        both = ((median_of(one, "fcp_s"), row.fcp[0]), (median_of(one, "plt_s"), row.plt[0]))
        return max(math.inf if ours is None else abs(1000 * ours / theirs - 1) for ours, theirs in both)

    best = min(cells, key=apart)
    if apart(best) == math.inf:
        return f"Over {scenario} nothing came whole."
    return (
        f"Of these {len(cells)} settings over {scenario} the paper's two times are nearest to "
        f"{_most(best.key.client)} requests at once and an initial window of {_window(best.key.server)}, "
        f"which are at most {math.ceil(100 * apart(best))} % off."
    )


def at_loss(runs: PageRuns, said: Published) -> Iterator[str]:
    """The section on proxies at 1 % of loss; nothing if its run is not there."""
    here = runs.of_campaign(LOSS)
    if not here:
        return
    theirs = [
        f"{one.plt[-1] / 1000:.2f} s"
        for has in (False, True)
        for one in said.table
        if (one.scenario, one.http, one.proxies) == ("geo-tum", "h3", has)
    ]
    yield "## Proxies at 1 % of loss"
    yield _AT_LOSS.format(*theirs, trials({len(one.records) for one in here}))
    direct = {one.key.client: one for one in here if not has_proxies(one)}
    rows = [
        [
            _most(one.key.client),
            _between(one),
            marked(seconds(one, "fcp_s"), one),
            marked(seconds(one, "plt_s"), one),
            _times(one, direct.get(one.key.client)),
        ]
        for one in here
    ]
    yield table(["requests at once", "proxies", "FCP", "PLT", "times direct's"], rows, left=2)


def _between(cell: Cell) -> str:
    chain = labels.treatment(cell.key.treatment).chain
    return labels.variant(chain.partition(",")[0]).options.get("cc", "-") if chain else "none"


def _times(cell: Cell, direct: Cell | None) -> str:
    if direct is None or cell is direct:
        return ""
    found = cell_ratio(direct, cell, "plt_s")
    if found is None or found.low is None or found.high is None:
        return "-"
    return with_ends(found.value, found.low, found.high)


def _window(server: str) -> str:
    return f"{labels.variant(server).options.get('iw', '10')} packets"


def _most(client: str) -> str:
    return labels.variant(client).options.get("parallel", "as many as the server allows")
