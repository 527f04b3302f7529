"""Whether client and server both decide: the split of the variance with the same stacks at both ends.

The thesis names both, by eye. Its clients differ from its servers, and so do ours, and what a split says
depends on which are left out; only the same stacks at both ends, then and now, can be compared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

import numpy as np

from bentpipe.study.claims import Claim, Published
from bentpipe.study.markdown import listed, percent

from .intervals import Pairs
from .runs import SAT, SATLOSS, ThesisRuns

_NAMES = {SAT: "SAT", SATLOSS: "SATLOSS"}
_LEAST = 3  # stacks, of a split


def share_of_client(pairs: Pairs, clients: tuple[str, ...], servers: tuple[str, ...]) -> float | None:
    """The clients' part of the variance of log goodput, of a complete table; None if it is not complete, or
    nothing varies.
    """
    if not clients or not servers or any(pair not in pairs for pair in itertools.product(clients, servers)):
        return None
    table = np.array([[math.log(pairs[one, other]) for other in servers] for one in clients])
    whole = float(table.var())
    return float(table.mean(axis=1).var()) / whole if whole else None


def same_stacks(pairs: Pairs) -> tuple[str, ...]:
    """The stacks with a value for every pair among them: the most, and the first of these by name."""
    both = sorted({one for one, _ in pairs} & {other for _, other in pairs})
    for count in range(len(both), _LEAST - 1, -1):
        for some in itertools.combinations(both, count):
            if all(pair in pairs for pair in itertools.product(some, repeat=2)):
                return some
    return ()


def range_of_2021(pairs: Pairs) -> tuple[float, float] | None:
    """The least and the largest part of the client, over all choices of at least three of its clients, with
    the servers that these have in common.
    """
    clients = sorted({one for one, _ in pairs})
    found = []
    for count in range(_LEAST, len(clients) + 1):
        for some in itertools.combinations(clients, count):
            servers = tuple(
                sorted({other for _, other in pairs if all((one, other) in pairs for one in some)})
            )
            share = share_of_client(pairs, some, servers) if len(servers) >= _LEAST else None
            found += [] if share is None else [share]
    return (min(found), max(found)) if found else None


def claims(runs: ThesisRuns) -> Iterator[Claim]:
    """The claim over each scenario whose pairs of 2021 were measured again, with the same stacks."""
    for scenario, word in _NAMES.items():
        if scenario not in runs.known.pairs:
            continue
        then, now = runs.known.pairs[scenario].bps, _now(runs, scenario)
        both: Mapping[tuple[str, str], float] = {pair: then[pair] for pair in now if pair in then}
        some = same_stacks(both)
        if not some:
            continue
        shares = [share_of_client(one, some, some) for one in (then, now)]
        here = (
            f"with {listed(some)} at both ends, the client has {percent(shares[1])} of the variance, and "
            f"had {percent(shares[0])}; so few stacks have no interval"
        )
        span = range_of_2021(then)
        note = "" if span is None else (
            f"of the slides' own pairs the client has {percent(span[0])} to {percent(span[1])}, by which are "
            "left out"
        )  # fmt: skip
        text = f"Client and server both decide, no side dominates ({word})"
        yield Claim(text, "by eye", Published(), None, here, note=note)


def _now(runs: ThesisRuns, scenario: str) -> dict[tuple[str, str], float]:
    """The pairs of today over that scenario's own queue, in virtual and in real time."""
    found = dict(runs.pairs_as_published(scenario))
    for cell in runs.in_real_time:
        values = cell.values("goodput_bps")
        if cell.key.scenario == scenario and values and not cell.failures:
            found[cell.key.client, cell.key.server] = sum(values) / len(values)
    return found
