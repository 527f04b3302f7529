"""The comparison of like with like: pairs that are the same in both, then stacks that are, then all; and the
definitions of goodput beside each other.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence

from bentpipe.analysis.trial_marks import marked
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, mbit, pair, several, table

from . import intervals
from .pairs import PairGoodputs, published_cells
from .runs import ThesisRuns

_SAME = """Same client and same server then and now. *Ratio*, now / 2021, is the geometric mean over these
pairs, with an interval of 95 %: of a bootstrap over clients and over servers where both vary, else by t on
logarithms, and then it is of that one client alone. Both are by equation 4.1. Pairs that failed then or now
have no ratio. The queue is [that of then](#the-simulators-queue-held-125-packets)."""
_STACKS = """Same server then and now, means over its pairs that never failed, by equation 4.1; their clients
are others, six then (five over satloss), so that this says less than the table above."""
_DEFINITIONS = """*Ours*: 8 · size / time from the first packet with data of the reply to its last byte.
*Equation 4.1*, that of the thesis and of the interop runner: from the first to the last 1-RTT packet that
the client received. The first of them may be the end of the handshake, a round trip before the reply, so it
is lower by what a round trip is of the transfer. *Efficiency 4.2* is goodput / rate, *4.3* goodput / (rate
· (1 - loss)), both of 4.1. Means over the pairs that never failed. On this page what stands beside the
published matrix is by 4.1; the experiments below, tables and pictures of all pairs, and the pages on
distributions and traces are ours."""


def ratios_to_2021(runs: ThesisRuns) -> dict[str, dict[tuple[str, str], float]]:
    """Scenario → now / 2021 of the pairs that failed neither then nor now."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for name, matrix in runs.matrices.items():
        if name in runs.known.pairs:
            mine = runs.pairs_as_published(name)
            found[name] = {
                (cell.key.client, cell.key.server): now / then
                for cell, then in published_cells(matrix, runs.known.pairs[name])
                if (now := mine.get((cell.key.client, cell.key.server))) is not None
            }
    return found


def same_pairs(runs: ThesisRuns) -> list[str]:
    """The section on pairs that are the same in both."""
    rows: list[list[str]] = []
    ratios = [[name, str(len(one)), _ratio(one)] for name, one in ratios_to_2021(runs).items() if one]
    for name, matrix in runs.matrices.items():
        if name not in runs.known.pairs:
            continue
        mine = runs.pairs_as_published(name)
        for cell, then in published_cells(matrix, runs.known.pairs[name]):
            now = mine.get((cell.key.client, cell.key.server))
            rows.append(
                [
                    name,
                    literal(f"{cell.key.client} → {cell.key.server}"),
                    mbit(then),
                    mbit(now),
                    "-" if now is None else f"{now / then:.2f}",
                    marked(pair(cell), cell),
                ]
            )
    if not rows:
        return ["### The same pairs", "No pair of this run is among the published ones."]
    head = ["scenario", "client → server", "2021", "now", "now / 2021", "now, ours"]
    return [
        "### The same pairs",
        _SAME,
        table(["scenario", "pairs", "ratio"], ratios),
        *folded(several(len(rows), "pair"), table(head, rows, left=2)),
    ]


def _ratio(ratios: intervals.Pairs) -> str:
    """The geometric mean of ratios, with its interval where there is one."""
    found = intervals.over_pairs(ratios)
    middle = statistics.geometric_mean(ratios.values())
    return f"{middle:.2f}" if found is None else found.written() + intervals.scope(ratios)


def common_servers(runs: ThesisRuns) -> list[str]:
    """The section on servers that are in both."""
    stacks = runs.common
    if not stacks:
        return []
    rows = []
    for name in runs.matrices:
        if name not in runs.known.pairs:
            continue
        mine, then = runs.pairs_as_published(name), runs.known.pairs[name]
        rows.append([name, *(_then_and_now(then, mine, stack) for stack in stacks)])
    parts = [
        "### The same servers",
        f"{several(len(stacks), 'stack')}: {', '.join(stacks)}. {_STACKS}",
        table(["scenario, 2021 / now", *stacks], rows),
    ]
    both = [
        [
            name,
            str(len(among)),
            mbit(statistics.fmean(among.values())),
            mbit(statistics.fmean(everyone.values())),
        ]
        for name in runs.matrices
        if (everyone := runs.pairs_as_published(name)) and (among := _among(everyone, stacks))
    ]
    if both:
        parts += [
            "Now alone: the mean over pairs of these stacks with one another, and over all pairs, as the "
            "mean that was published is over other stacks.",
            table(["scenario", "pairs", "these stacks, Mbit/s", "all stacks, Mbit/s"], both),
        ]
    return parts


def _then_and_now(then: PairGoodputs, mine: Mapping[tuple[str, str], float], stack: str) -> str:
    now = [value for pair, value in mine.items() if pair[1] == stack]
    past = list(then.of_server(stack).values())
    first, second = (mbit(statistics.fmean(one)) if one else "failed" for one in (past, now))
    return f"{first} / {second}"


def _among(table_: Mapping[tuple[str, str], float], stacks: Sequence[str]) -> dict[tuple[str, str], float]:
    return {pair: value for pair, value in table_.items() if set(pair) <= set(stacks)}


def definitions(runs: ThesisRuns) -> list[str]:
    """The section on the definitions of goodput and efficiency."""
    rows = []
    for name in runs.matrices:
        ours, mine = runs.pairs(name), runs.pairs_as_published(name)
        if not ours or not mine:
            continue
        rate, loss = runs.rate_bps(name), _loss(runs, name)
        mean = statistics.fmean(mine.values())
        rows.append(
            [
                name,
                mbit(statistics.fmean(ours.values())),
                mbit(mean),
                f"{runs.known.scenarios[name].mean:.2f}",
                f"{100 * mean / rate:.1f} %",
                "-" if loss is None else f"{100 * mean / rate / (1 - loss):.1f} %",
                str(len(mine)),
            ]
        )
    if not rows:
        return []
    head = ["", "ours, Mbit/s", "equation 4.1", "published (4.1)", "efficiency 4.2", "4.3", "pairs"]
    return ["### Two definitions of goodput", _DEFINITIONS, table(head, rows)]


def _loss(runs: ThesisRuns, name: str) -> float | None:
    """The share of packets that the link towards the client loses; None where that is not one number."""
    said = str(runs.source.manifest.scenarios[name].summary.get("forward_loss", "none"))
    if said == "none":
        return 0.0
    found = re.fullmatch(r"([0-9.]+) %", said)
    return float(found[1]) / 100 if found else None
