"""Checks drawn from many trials of noq: how often `bentpipe check --against` is wrong, and what it finds.

Pairs are of trials with the same seed: in a campaign with common draws these have the same losses, as the
pairs of a check have. A share of drawn checks has Wilson's interval (E. B. Wilson, J. Am. Stat. Assoc. 22,
1927).
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe.analysis.inference import CONFIDENCE, paired_ratio
from bentpipe.analysis.sequential import Rigour, paired_change
from bentpipe.errors import BentpipeError
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.source import Source

BASE, LARGER, SMALLER = "noq", "noq:window=100000000", "noq:window=1320000"
ERROR, MARGIN, MOST = 0.01, 0.01, 28  # as `bentpipe check` has them by default
DRAWS = 1000
SLOWER = 1.03
_SEED = 1
_Z = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True)
class Pool:
    """The times of one path: variant → seed → seconds."""

    scenario: str
    times_s: dict[str, dict[str, float]]

    @cached_property
    def base_s(self) -> list[float]:
        return list(self.times_s[BASE].values())

    @cached_property
    def spread(self) -> float:
        """The standard deviation of the logarithms."""
        return statistics.stdev(map(math.log, self.base_s))

    @cached_property
    def pairs(self) -> dict[str, list[float]]:
        """Variant → logarithms of its times / the base's, of all pairs with the same seed."""
        base = self.times_s[BASE]
        return {
            variant: [math.log(now / base[seed]) for seed, now in times.items() if seed in base]
            for variant, times in self.times_s.items()
        }

    @cached_property
    def pair_spread(self) -> float:
        """The standard deviation of the logarithms of pairs with the same seed, which send other packets."""
        return statistics.stdev(self.pairs[LARGER])

    def change(self, variant: str) -> MeasuredValue | None:
        """By how much a variant takes longer, in percent, in the mean over pairs with the same seed."""
        ratios = list(map(math.exp, self.pairs[variant]))
        found = paired_ratio([1.0] * len(ratios), ratios)
        if found is None or found.low is None or found.high is None:
            return None
        return MeasuredValue(*(100 * (one - 1) for one in (found.value, found.low, found.high)))

    def with_other_seeds(self, chance: random.Random, factor: float = 1.0) -> list[float]:
        """Logarithms of now / base of pairs that have nothing to do with each other."""
        drawn = chance.sample(self.base_s, 2 * MOST)
        return [math.log(factor * now / base) for base, now in zip(drawn[:MOST], drawn[MOST:], strict=True)]

    def with_some_late(self, chance: random.Random) -> list[float]:
        """Logarithms of now / base where one trial in ten takes four times as long, on both sides."""
        late = ([math.log(4) if chance.random() < 0.1 else 0.0 for _ in range(2)] for _ in range(MOST))
        pairs = zip(self.with_other_seeds(chance), late, strict=True)
        return [logarithm + now - base for logarithm, (base, now) in pairs]

    def with_same_seeds(self, chance: random.Random, variant: str, factor: float = 1.0) -> list[float]:
        """Logarithms of now / base of pairs with the same seeds."""
        return [one + math.log(factor) for one in chance.sample(self.pairs[variant], MOST)]


Draw = Callable[[Pool, random.Random], list[float]]
_EQUAL: dict[str, Draw] = {
    "other seeds": lambda pool, chance: pool.with_other_seeds(chance),
    "other seeds, one in ten late": lambda pool, chance: pool.with_some_late(chance),
    "same seeds, a larger window": lambda pool, chance: pool.with_same_seeds(chance, LARGER),
}


@dataclass(frozen=True)
class SlowerPath:
    """A path on which one side is slower: in which share of the checks that is called worse, in percent."""

    pool: Pool
    same: MeasuredValue  # by 3 %, pairs with the same seeds
    other: MeasuredValue  # by 3 %, pairs with other seeds
    window: MeasuredValue  # by a window that is too small, same seeds


@dataclass(frozen=True)
class DrawnChecks:
    """Checks of equal stacks, and of one that is slower, drawn from the trials of each path."""

    pools: Sequence[Pool]

    @cached_property
    def rigour(self) -> Rigour:
        return Rigour.of(ERROR, MOST).shared(len(self.pools))

    @cached_property
    def alarms(self) -> dict[str, int]:
        """How pairs are drawn → in how many checks a path is called better or worse, where both sides are
        equal.
        """
        return {name: self._alarms(draw) for name, draw in _EQUAL.items()}

    @cached_property
    def slower(self) -> list[SlowerPath]:
        return [
            SlowerPath(
                pool,
                self._found(pool, lambda one, chance: one.with_same_seeds(chance, LARGER, SLOWER)),
                self._found(pool, lambda one, chance: one.with_other_seeds(chance, SLOWER)),
                self._found(pool, lambda one, chance: one.with_same_seeds(chance, SMALLER)),
            )
            for pool in self.pools
        ]

    def _alarms(self, draw: Draw) -> int:
        chance = random.Random(_SEED)
        alarms = 0
        for _ in range(DRAWS):
            words = [self._called(draw(pool, chance)) for pool in self.pools]
            alarms += any(word in ("above", "below") for word in words)
        return alarms

    def _found(self, pool: Pool, draw: Draw) -> MeasuredValue:
        chance = random.Random(_SEED)
        return share(sum(self._called(draw(pool, chance)) == "above" for _ in range(DRAWS)))

    def _called(self, logarithms: Sequence[float]) -> str | None:
        return paired_change(logarithms, self.rigour, math.log1p(MARGIN)).sure

    def pairs_needed(self, spread: float) -> str:
        """How many pairs with this spread find the slowdown, in two digits: the interval of their median then
        reaches as far.
        """
        z = statistics.NormalDist().inv_cdf(1 - self.rigour.spent(MOST) / 2)
        reach = z * math.sqrt(math.pi / 2) * spread  # of a median, times √pairs
        return f"{float(f'{(reach / math.log(SLOWER)) ** 2:.2g}'):.0f}"


def share(count: int, checks: int = DRAWS) -> MeasuredValue:
    """A share of drawn checks in percent, with Wilson's interval."""
    value, squared = count / checks, _Z**2 / checks
    middle = (value + squared / 2) / (1 + squared)
    reach = _Z * math.sqrt(value * (1 - value) / checks + squared / (4 * checks)) / (1 + squared)
    low = 0.0 if count == 0 else middle - reach
    high = 1.0 if count == checks else middle + reach
    return MeasuredValue(100 * value, 100 * low, 100 * high)


def pools_of(source: Source) -> list[Pool]:
    """The times of each path of a run. BentpipeError if a trial failed, or if there are too few, or too few
    pairs with the same seed.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for one in source.in_order:
        if one.completion_s is None:
            raise BentpipeError(f"{source.folder}: {one.trial}: {one.outcome}", "all trials must succeed")
        found.setdefault(one.scenario, {}).setdefault(one.client, {})[one.seed] = one.completion_s
    for scenario, times in found.items():
        least = 2 * MOST
        short = [name for name in (BASE, LARGER, SMALLER) if len(times.get(name, ())) < least]
        if short:
            raise source.refused(f"{scenario} has fewer than {least} trials of {short[0]}", "run alarms")
        unpaired = [
            name for name in (LARGER, SMALLER) if len(times[name].keys() & times[BASE].keys()) < least
        ]
        if unpaired:
            raise source.refused(
                f"{scenario} has fewer than {least} pairs of {BASE} and {unpaired[0]} with the same seed",
                "run alarms --draws common",
            )
    return [Pool(scenario, times) for scenario, times in found.items()]
