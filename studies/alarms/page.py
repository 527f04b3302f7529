"""The page on what `bentpipe check --against` gets wrong and what it finds: draws from many trials of noq."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.sequential import Rigour, paired_change
from bentpipe.errors import BentpipeError
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import several, table
from bentpipe.study.source import Source

BASE, LARGER, SMALLER = "noq", "noq:window=100000000", "noq:window=1320000"
ERROR, MARGIN, MOST = 0.01, 0.01, 28  # as `bentpipe check` has them by default
DRAWS = 1000
SLOWER = 1.03
_SEED = 1

_OPENING = """`bentpipe check --against` pairs trials of the same seed, and says *better* or *worse* where a
measure's median changed by more than 1 % and not by chance: the intervals of all changes of a check hold
together in 99 % of cases. Does it keep that? Here checks are drawn from {trials} of each path and variant: a
check has {paths} objectives, how soon 5 MB are there over each path, and 14 or 28 pairs of each, {draws}
checks to a row."""
_EQUAL = """Both sides are the same stack, so that every *better* and *worse* is a false alarm. *Other seeds*:
both sides are of noq, with other seeds, so that all that differs is chance. *Same seeds*: the client's flow
control window is larger than it needs to be, which changes a few bytes and so, where packets are lost,
which. *One in ten*: as *other seeds*, and on both sides one trial in ten takes four times as long."""
_UNEQUAL = """One of the objectives is slower. *By 3 %*: the times of the other side, drawn as above, are made
3 % longer. *Smaller window*: the client's flow control window is 1.32 MB, which is a little too small for
some paths; what that does to the median is in the table. *Spread*: the standard deviation of the trials'
times, in percent. Where trials spread by more than the change, 28 pairs do not show it, and the check says
*undecided*, with the interval: over `{path}` it would take some {pairs} pairs."""


@dataclass(frozen=True)
class Pool:
    """The times of one path, iteration by iteration: variant → seconds."""

    scenario: str
    times_s: dict[str, list[float]]

    @property
    def count(self) -> int:
        return len(self.times_s[BASE])

    @cached_property
    def spread(self) -> float:
        """The standard deviation of the logarithms."""
        return statistics.stdev(map(math.log, self.times_s[BASE]))

    def median_change(self, variant: str) -> float:
        """Of the variant's median over the base's."""
        return statistics.median(self.times_s[variant]) / statistics.median(self.times_s[BASE])

    def with_other_seeds(self, chance: random.Random, factor: float = 1.0) -> list[float]:
        """Logarithms of now / base of pairs that have nothing to do with each other."""
        drawn = chance.sample(self.times_s[BASE], 2 * MOST)
        return [math.log(factor * now / base) for base, now in zip(drawn[:MOST], drawn[MOST:], strict=True)]

    def with_some_late(self, chance: random.Random) -> list[float]:
        """Logarithms of now / base where one trial in ten takes four times as long, on both sides."""
        late = ([math.log(4) if chance.random() < 0.1 else 0.0 for _ in range(2)] for _ in range(MOST))
        pairs = zip(self.with_other_seeds(chance), late, strict=True)
        return [logarithm + now - base for logarithm, (base, now) in pairs]

    def with_same_seeds(self, chance: random.Random, variant: str, factor: float = 1.0) -> list[float]:
        """Logarithms of now / base of pairs with the same seeds."""
        numbers = chance.sample(range(self.count), MOST)
        own, other = self.times_s[BASE], self.times_s[variant]
        return [math.log(factor * other[number] / own[number]) for number in numbers]


Draw = Callable[[Pool, random.Random], list[float]]


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if a path has too few trials, or one that did not succeed."""
    pools = _pools(runs[0])
    path = folder / "alarms.md"
    path.write_text(markdown.page(_sections(runs[0], pools)))
    return [path]


def _pools(source: Source) -> list[Pool]:
    found: dict[str, dict[str, list[float]]] = {}
    for one in source.in_order:
        if one.completion_s is None:
            raise BentpipeError(f"{source.folder}: {one.trial}: {one.outcome}", "all trials must succeed")
        found.setdefault(one.scenario, {}).setdefault(one.client, []).append(one.completion_s)
    for scenario, times in found.items():
        short = [name for name in (BASE, LARGER, SMALLER) if len(times.get(name, ())) < 2 * MOST]
        if short:
            raise source.refused(f"{scenario} has fewer than {2 * MOST} trials of {short[0]}", "run alarms")
    return [Pool(scenario, times) for scenario, times in found.items()]


def _sections(source: Source, pools: Sequence[Pool]) -> list[str]:
    rigour = Rigour.of(ERROR, MOST).shared(len(pools))
    opening = _OPENING.format(trials=several(pools[0].count, "trial"), paths=len(pools), draws=DRAWS)
    return [
        "# False alarms, and slowdowns that are found",
        opening,
        "## Equal stacks",
        _EQUAL,
        _equal(pools, rigour),
        "## A slower stack",
        _unequal(pools, rigour),
        _slower(pools, rigour),
        *closing.of_all([source]),
    ]


def _unequal(pools: Sequence[Pool], rigour: Rigour) -> str:
    """With how many pairs of other seeds the widest spread leaves an interval of less than the change."""
    widest = max(pools, key=lambda pool: pool.spread)
    z = statistics.NormalDist().inv_cdf(1 - rigour.spent(MOST) / 2)
    reach = z * math.sqrt(math.pi / 2) * math.sqrt(2) * widest.spread  # of a median, times √pairs
    pairs = (reach / math.log(SLOWER)) ** 2
    return _UNEQUAL.format(path=widest.scenario, pairs=f"{round(pairs, -2):.0f}")


def _equal(pools: Sequence[Pool], rigour: Rigour) -> str:
    ways: list[tuple[str, Draw]] = [
        ("other seeds", lambda pool, chance: pool.with_other_seeds(chance)),
        ("other seeds, one in ten late", lambda pool, chance: pool.with_some_late(chance)),
        ("same seeds, a larger window", lambda pool, chance: pool.with_same_seeds(chance, LARGER)),
    ]
    rows = []
    for name, draw in ways:
        chance = random.Random(_SEED)
        alarms = 0
        for _ in range(DRAWS):
            words = [paired_change(draw(pool, chance), rigour, math.log1p(MARGIN)).sure for pool in pools]
            alarms += any(word in ("above", "below") for word in words)
        rows.append([name, str(DRAWS), str(alarms), f"{100 * alarms / DRAWS:.1f} %"])
    return table(["pairs of", "checks", "with a false alarm", "share"], rows)


def _slower(pools: Sequence[Pool], rigour: Rigour) -> str:
    rows = []
    for pool in pools:
        other = _found(pool, rigour, lambda one, chance: one.with_other_seeds(chance, SLOWER))
        same = _found(pool, rigour, lambda one, chance: one.with_same_seeds(chance, LARGER, SLOWER))
        window = _found(pool, rigour, lambda one, chance: one.with_same_seeds(chance, SMALLER))
        rows.append(
            [
                pool.scenario,
                f"{100 * pool.spread:.2f} %",
                other,
                same,
                f"{100 * (pool.median_change(SMALLER) - 1):+.1f} %",
                window,
            ]
        )
    head = ["path", "spread", "3 %, other seeds", "3 %, same seeds", "smaller window", "found"]
    return table(head, rows)


def _found(pool: Pool, rigour: Rigour, draw: Draw) -> str:
    """In how many of the draws the change is called worse."""
    chance = random.Random(_SEED)
    found = sum(
        paired_change(draw(pool, chance), rigour, math.log1p(MARGIN)).sure == "above" for _ in range(DRAWS)
    )
    return f"{100 * found / DRAWS:.1f} %"
