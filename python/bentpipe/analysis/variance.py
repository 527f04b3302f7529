"""The split of the variance of a measure: the client's share, the server's, that of their interaction, and
chance.

Model: two-way random effects with replication, `value = mean + client + server + pair + trial`, each effect
drawn at random (S. R. Searle, G. Casella, C. E. McCulloch, Variance Components, 1992, chapter 4). Pairs may
have unequal numbers of trials: means of pairs are then weighed equally, and the variance of a pair's mean is
the trials' over the harmonic mean of these numbers (the method of unweighted means). An estimate below 0
counts as 0. Intervals are of a bootstrap over clients and over servers: others might have been chosen. Where
the servers are all that are meant, it is over clients alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_DRAWS = 2000
_SEED = 20260401
CONFIDENCE = 0.95


@dataclass(frozen=True)
class VarianceShares:
    """Shares of the variance of single trials; they add up to 1."""

    client: float
    server: float
    pair: float  # what client and server do together that neither does with all others
    chance: float  # between trials of a pair


@dataclass(frozen=True)
class VarianceSplit:
    """The shares with their intervals, and what they are shares of."""

    shares: VarianceShares
    low: VarianceShares
    high: VarianceShares
    variance: float  # of a single trial, in the square of the measure's unit
    clients: int
    servers: int
    trials: int


@dataclass(frozen=True)
class _Tables:
    """Of every pair the mean, the variance and the number of its trials: in the last two axes clients down,
    servers across; before them perhaps one of many tables.
    """

    mean: Floats
    variance: Floats
    trials: Floats

    def drawn(self, many: int, all_servers: bool) -> _Tables:
        """The given number of tables whose clients and, unless `all_servers`, servers are drawn from those of
        this one, with repetition.
        """
        random = np.random.default_rng(_SEED)
        down, across = self.mean.shape
        clients = random.integers(down, size=(many, down, 1))
        servers = random.integers(across, size=(many, 1, across))
        if all_servers:
            servers = np.broadcast_to(np.arange(across), servers.shape)
        return _Tables(*(one[clients, servers] for one in (self.mean, self.variance, self.trials)))


def split(
    values: Mapping[tuple[str, str], Sequence[float]], all_servers: bool = False
) -> VarianceSplit | None:
    """The split of the values of (client, server) pairs. Every client must have met every server, and one of
    them at least twice; None where that is not so, or there are less than two of either. With `all_servers`
    no others might have been chosen.
    """
    clients = sorted({client for client, _ in values})
    servers = sorted({server for _, server in values})
    cells = [[values.get((client, server), ()) for server in servers] for client in clients]
    counts = np.array([[len(cell) for cell in row] for row in cells], dtype=np.float64)
    if len(clients) < 2 or len(servers) < 2 or counts.min() < 1 or counts.max() < 2:
        return None
    table = _Tables(
        np.array([[np.mean(cell) for cell in row] for row in cells]),
        np.array([[np.var(cell, ddof=1) if len(cell) > 1 else 0.0 for cell in row] for row in cells]),
        counts,
    )
    components = _components(table)
    if not components.sum():
        return None
    drawn = _components(table.drawn(_DRAWS, all_servers))
    known = drawn[drawn.sum(axis=-1) > 0]
    ends = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    low, high = np.quantile(known / known.sum(axis=-1, keepdims=True), ends, axis=0)
    return VarianceSplit(
        VarianceShares(*(components / components.sum()).tolist()),
        VarianceShares(*low.tolist()),
        VarianceShares(*high.tolist()),
        float(components.sum()),
        len(clients),
        len(servers),
        int(counts.sum()),
    )


def without_gaps(values: Mapping[tuple[str, str], Sequence[float]]) -> dict[tuple[str, str], Sequence[float]]:
    """The pairs of those clients and servers that all met each other: the stack in most pairs without a value
    goes first, of equals the server, until none is left.
    """
    kept = dict(values)
    while True:
        clients, servers = (sorted({pair[place] for pair in kept}) for place in (0, 1))
        gaps = [(c, s) for c in clients for s in servers if not kept.get((c, s))]
        if not gaps:
            return kept
        missing = [(sum(s == name for _, s in gaps), 1, name) for name in servers]
        missing += [(sum(c == name for c, _ in gaps), 0, name) for name in clients]
        _, place, worst = max(missing)
        kept = {pair: some for pair, some in kept.items() if pair[place] != worst}


def _components(table: _Tables) -> Floats:
    """The variances of client, server, pair and chance, in the last axis."""
    mean, trials, pairs = table.mean, table.trials, (-2, -1)
    down, across = mean.shape[-2:]
    freedom = trials - 1
    chance = (table.variance * freedom).sum(axis=pairs) / np.maximum(freedom.sum(axis=pairs), 1.0)
    of_mean = chance * (1 / trials).mean(axis=pairs)  # chance in the mean of a pair
    rows, columns = mean.mean(axis=-1), mean.mean(axis=-2)
    rest = mean - rows[..., :, None] - columns[..., None, :] + mean.mean(axis=pairs)[..., None, None]
    together = (rest**2).sum(axis=pairs) / ((down - 1) * (across - 1))
    client = np.var(rows, axis=-1, ddof=1) - together / across
    server = np.var(columns, axis=-1, ddof=1) - together / down
    found: Floats = np.maximum(np.stack([client, server, together - of_mean, chance], axis=-1), 0.0)
    return found


def names() -> tuple[str, ...]:
    """The parts in the order of `VarianceShares`."""
    return tuple(VarianceShares.__dataclass_fields__)


def rows(found: VarianceSplit) -> list[tuple[str, float, float, float]]:
    """Of every part its name, share and interval."""
    return list(zip(names(), astuple(found.shares), astuple(found.low), astuple(found.high), strict=True))
