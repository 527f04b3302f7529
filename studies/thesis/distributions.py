"""The page `thesis-distributions`: how goodput is distributed over trials, pairs and roles, how scenarios
are related, and how much of the variance is due to client and server.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from bentpipe.analysis import variance
from bentpipe.analysis.variance import VarianceSplit
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import several, table

from . import drawn, intervals
from .controllers import controller
from .drawn import Boxed, Roles
from .intervals import Estimate
from .runs import SAT, SATLOSS, ThesisRuns, made_of, short

_BOXES, _SWARMS, _RELATIONS, _CONTROLLERS = (
    f"thesis-{word}.svg" for word in ("boxes", "swarms", "relations", "controllers")
)
_PANELS = {
    "thesis-violins.svg": (SAT, SATLOSS),
    "thesis-violins-others.svg": ("goodput", "astra", "eutelsat"),
}
_WHICH = (("goodput", SAT), (SAT, SATLOSS))

_TEXT = """The pictures of the thesis's chapter 5 and appendix B, from the trials of [the main
page](thesis.md). Each says how many trials it stands on; the commands that make it again stand at the end."""

_INTERVALS = """Intervals are of a bootstrap over clients and over servers, 95 %: pairs with a stack in
common are not independent, so stacks are drawn, not pairs."""

_VARIANCE = """The thesis assumed that the server alone decides over goodput, drew these pictures, and
concluded by eye that both ends contribute (section 5.4). Here the variance of the logarithm of goodput is
split: two-way random effects with replication, with the same stacks at both ends, those of which no pair has
a gap. *Pair* is what a client and a server do together that neither does with all others; *chance* is
between trials of one pair. It is not said of the thesis's own pairs: its clients and servers are different
stacks, and what a split says depends on which are left out. """

_MEASURES = {"client": "client", "server": "server", "pair": "pair", "chance": "chance"}


def write(runs: ThesisRuns, folder: Path) -> list[Path]:
    """Write the page and its pictures to `folder`; the files, the page first."""
    files = [folder / name for name in (_BOXES, _SWARMS)]
    drawn.boxes([_boxed(runs, name) for name in runs.matrices], files[0])
    tables = {name: runs.pairs(name) for name in runs.matrices}
    names = {server: short(server) for one in runs.matrices.values() for server in one.servers}
    drawn.swarms(tables, names, {name: runs.rate_bps(name) for name in tables}, files[1])
    parts = ["# The thesis's distributions and relations", _TEXT, *_distributions(runs)]
    for file, wanted in _PANELS.items():
        panels = [(name, known) for name in wanted if name in runs.matrices and (known := roles(runs, name))]
        if panels:
            drawn.violins(panels, folder / file)
            files.append(folder / file)
            parts.append(f"![Goodput by stack and role over {', '.join(n for n, _ in panels)}]({file})")
            records = [one for one in runs.records if one.scenario in dict(panels) and one.ok]
            parts.append(f"{made_of(records)} that succeeded.")
    parts += [
        "## How much of the variance is due to client and server",
        _VARIANCE + _INTERVALS,
        *_split_table(runs),
    ]
    made, sections = _relations(runs, names, folder)
    parts += [*sections, *_not_done(), *closing.made(runs.source, runs.known.sources, runs.sources[1:])]
    page = folder / "thesis-distributions.md"
    page.write_text(markdown.page(parts))
    return [page, *files, *made]


def _boxed(runs: ThesisRuns, name: str) -> Boxed:
    mine = [one for one in runs.records if one.scenario == name]
    return Boxed(
        name, [(one.goodput_bps or 0.0) / 1e6 if one.ok else 0.0 for one in mine], runs.rate_bps(name) / 1e6
    )


def _distributions(runs: ThesisRuns) -> list[str]:
    whole = sum(len(runs.pairs(name)) for name in runs.matrices)
    return [
        "## By scenario",
        f"![Goodput and efficiency of all trials]({_BOXES})",
        f"{made_of(runs.records)}, figure 5.2. As in the source, failed trials are in it with 0. Red: the "
        f"link's "
        "rate, where it is in view. Boxes are quartiles, whiskers reach as far as 1.5 of their distance.",
        f"![Mean goodput of every pair]({_SWARMS})",
        f"{several(whole, 'pair')} without a failed trial, figure 5.3. Red: the link's rate.",
        "## By stack and role",
        "Figure 5.4, and B.1 to B.3. Widths are of a kernel density estimate, within the least and the "
        "largest "
        "value; failed trials are left out, as in the source.",
    ]


def roles(runs: ThesisRuns, scenario: str) -> list[Roles]:
    """Of every stack with a trial that succeeded."""
    matrix = runs.matrices[scenario]
    found = []
    for stack in sorted({*matrix.clients, *matrix.servers}, key=str.casefold):
        as_client, as_server = (
            [one / 1e6 for cell in cells for one in cell.values("goodput_bps")]
            for cells in (matrix.row(stack), matrix.column(stack))
        )
        if as_client or as_server:
            found.append(Roles(short(stack), as_client, as_server))
    return found


def splits(runs: ThesisRuns) -> dict[str, VarianceSplit]:
    """Scenario → the split of the variance of log goodput, where there is one."""
    found = {}
    for name, matrix in runs.matrices.items():
        values = {
            (cell.key.client, cell.key.server): [math.log(one) for one in cell.values("goodput_bps")]
            for cell in matrix.cells
        }
        split = variance.split(at_both_ends(values))
        if split is not None:
            found[name] = split
    return found


def at_both_ends(
    values: Mapping[tuple[str, str], Sequence[float]],
) -> dict[tuple[str, str], Sequence[float]]:
    """The pairs among the stacks that are client and server, all of them with values: with one that is at one
    end alone, what is due to that end would depend on it.
    """
    kept = dict(values)
    while True:
        clients, servers = ({pair[place] for pair in kept} for place in (0, 1))
        if clients == servers:
            whole = variance.without_gaps(kept)
            if whole.keys() == kept.keys():
                return whole
            kept = whole
        else:
            both = clients & servers
            kept = {pair: some for pair, some in kept.items() if both.issuperset(pair)}


def _split_table(runs: ThesisRuns) -> list[str]:
    known = splits(runs)
    if not known:
        return ["No scenario has two stacks at both ends of which all pairs have two trials."]
    rows = [
        [
            name,
            *(
                "deterministic"
                if not split.shares.chance and part == _MEASURES["chance"]
                else Estimate(share, low, high).written(0, 100, " %")
                for part, share, low, high in variance.rows(split)
            ),
            f"{math.sqrt(split.variance):.2f}",
            str(split.clients),
            str(split.trials),
        ]
        for name, split in known.items()
    ]
    head = ["scenario", *variance.names(), "spread of log goodput", "stacks at both ends", "trials"]
    return [table(head, rows), _verdict(known)]


def _verdict(known: dict[str, VarianceSplit]) -> str:
    """The conclusion from the intervals on whether the server alone decides."""
    lines = []
    for name, one in known.items():
        more = one.low.server > one.high.client
        rest = one.shares.client + one.shares.pair
        text = "the server has more of it than the client" if more else "server and client are not told apart"
        lines.append(
            f"- **{name}**: {text}; the client alone and how it suits the server have {100 * rest:.0f} %."
        )
    return "\n".join(lines)


def correlations(runs: ThesisRuns) -> dict[tuple[str, str], Estimate]:
    """(one scenario, another) → Spearman's coefficient of the mean efficiencies of pairs."""
    tables = {name: runs.pairs(name, "efficiency") for name in runs.matrices}
    found = {}
    for first, second in itertools.combinations(tables, 2):
        estimate = intervals.over_stacks([tables[first], tables[second]], intervals.ranks)
        if estimate is not None:
            found[first, second] = estimate
    return found


def _relations(runs: ThesisRuns, names: dict[str, str], folder: Path) -> tuple[list[Path], list[str]]:
    tables = {name: runs.pairs(name, "efficiency") for name in runs.matrices}
    if len(tables) < 2:
        return [], []
    known = correlations(runs)
    texts = {pair: f"{one.value:.2f}\n{one.low:.2f} to {one.high:.2f}" for pair, one in known.items()}
    drawn.relations(tables, names, texts, folder / _RELATIONS)
    rows = [
        [first, second, one.written(), str(len(tables[first].keys() & tables[second].keys()))]
        for (first, second), one in known.items()
    ]
    parts = [
        "## Relations of scenarios",
        f"![Efficiency of pairs over one scenario against another]({_RELATIONS})",
        "Figure 5.5: a dot is a pair that never failed over either, its mean efficiencies in percent; "
        "grey: equal "
        "over both. In the upper triangle Spearman's coefficient of the panel below, and its interval. "
        + _INTERVALS,
        table(["", "and", "rank correlation", "pairs"], rows, left=2),
    ]
    panels = [one for one in _WHICH if set(one) <= set(tables)]
    if not panels:
        return [folder / _RELATIONS], parts
    known_of = {server: word for server in names if (word := controller(server)) is not None}
    drawn.by_controller(panels, tables, known_of, folder / _CONTROLLERS)
    parts += [
        f"![The same by congestion control of the server]({_CONTROLLERS})",
        "Figure 5.6: the same pairs by the congestion control that the server uses by default. What it "
        "alone does "
        "is [an experiment](thesis.md#congestion-control).",
    ]
    return [folder / _RELATIONS, folder / _CONTROLLERS], parts


def _not_done() -> list[str]:
    return [
        "## Not done",
        "\n".join(
            [
                "- **The official runner's values** (figures 5.21 and 5.22): they are of a web site that "
                "keeps its "
                "results for some days; no result.json of 2022, nor one of today, comes with Bentpipe. "
                "Over the "
                "runner's own link, goodput, ours stand beside the thesis's on the main page.",
            ]
        ),
        "Elsewhere: weather and time of day (figures 5.23 and 5.24), which a link in virtual time does not "
        "have, are of [real links](../real_links/real-links.md); the test case LONGRTT (figure 5.1a) is [of "
        "stacks](../stacks/stacks.md#over-a-long-round-trip).",
    ]
