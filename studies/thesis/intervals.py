"""Intervals of what is said over pairs of stacks: a bootstrap over clients and over servers.

Pairs with a stack in common are not independent, and other stacks might have been chosen; so stacks are drawn
with repetition, not pairs. Failed pairs have no value, and are left out of each draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bentpipe.study.intervals import with_ends
from bentpipe.study.means import GeometricMean

Floats = npt.NDArray[np.float64]
Pairs = Mapping[tuple[str, str], float]  # (client, server) → value

_DRAWS = 1000
_SEED = 20260401
_SURE = 0.95
_ENDS = (0.025, 0.975)


@dataclass(frozen=True)
class Estimate:
    """A value and the interval that contains the truth in about 95 % of cases."""

    value: float
    low: float
    high: float

    def written(self, digits: int = 2, factor: float = 1.0, unit: str = "") -> str:
        """`1.66 (1.20 to 2.31)`."""
        return with_ends(self.value, self.low, self.high, digits, unit=unit, factor=factor)


def over_ratios(logarithms: Sequence[float]) -> Estimate | None:
    """The geometric mean of ratios that are independent, given by their logarithms, by Student's t. None of
    less than two.
    """
    found = GeometricMean.of([math.exp(one) for one in logarithms])
    if found is None or found.low is None or found.high is None:
        return None
    return Estimate(found.value, found.low, found.high)


def over_pairs(ratios: Pairs) -> Estimate | None:
    """The geometric mean of the ratios of pairs: by a bootstrap over stacks where several clients and servers
    are among them, and as independent where one side alone varies.
    """
    found = over_stacks([ratios], _geometric) if ratios else None
    if found is not None or _varies(ratios):
        return found
    return over_ratios([math.log(one) for one in ratios.values()])


def scope(ratios: Pairs) -> str:
    """What an interval of `over_pairs` does not cover: `, of one client`; "" if both sides vary."""
    sides = [{pair[place] for pair in ratios} for place in (0, 1)]
    words = [word for word, one in zip(("client", "server"), sides, strict=True) if len(one) == 1]
    return f", of one {' and one '.join(words)}" if words else ""


def _varies(ratios: Pairs) -> bool:
    """Whether several clients and several servers are among the pairs."""
    return min(len({pair[place] for pair in ratios}) for place in (0, 1)) > 1 if ratios else False


def _geometric(ratios: Floats) -> float:
    return float(np.exp(np.log(ratios).mean()))


def over_stacks(tables: Sequence[Pairs], statistic: Callable[..., float]) -> Estimate | None:
    """A statistic of one or more tables of pairs, given as arrays of the pairs that have a value in all of
    them. None if these are less than three, or of one client or server alone.
    """
    common = sorted(set.intersection(*(set(one) for one in tables)))
    clients, servers = (sorted({pair[place] for pair in common}) for place in (0, 1))
    if len(common) < 3 or min(len(clients), len(servers)) < 2:
        return None
    grids = [np.full((len(clients), len(servers)), np.nan) for _ in tables]
    for grid, table in zip(grids, tables, strict=True):
        for client, server in common:
            grid[clients.index(client), servers.index(server)] = table[client, server]
    random = np.random.default_rng(_SEED)
    drawn = []
    for _ in range(_DRAWS):
        rows = random.integers(len(clients), size=len(clients))
        columns = random.integers(len(servers), size=len(servers))
        value = _known(statistic, [grid[np.ix_(rows, columns)] for grid in grids])
        if np.isfinite(value):
            drawn.append(value)
    if not drawn:
        return None
    low, high = np.quantile(drawn, _ENDS)
    return Estimate(_known(statistic, grids), float(low), float(high))


def _known(statistic: Callable[..., float], grids: Sequence[Floats]) -> float:
    keep = ~np.isnan(grids[0])
    if np.count_nonzero(keep) < 3:
        return float("nan")
    return statistic(*(grid[keep] for grid in grids))


def ratio_of_means(first: Floats, second: Floats) -> float:
    return float(first.mean() / second.mean())


def correlation(first: Floats, second: Floats) -> float:
    """Pearson's coefficient; NaN where one of both does not vary."""
    if not first.std() or not second.std():
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def ranks(first: Floats, second: Floats) -> float:
    """Spearman's coefficient; ties have the mean of their ranks."""
    return correlation(_ranked(first), _ranked(second))


def _ranked(values: Floats) -> Floats:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    middle: Floats = last - (count - 1) / 2
    return middle[place]
