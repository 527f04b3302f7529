"""How disciplines compare with drop-tail, and marks with drops: ratios of each server, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bentpipe.analysis.cell_ratio import Measured, cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.inference import Ratio, geometric_mean
from bentpipe.runs.records import Record
from bentpipe.study.claims import MARGIN, NO_EFFECT
from bentpipe.study.means import GeometricMean

from .disciplines import TAIL, discipline, in_order

MARKING_OFF = ", ecn=off"
_RATIOS = "../../docs/reference/study-verdicts.md#intervals-of-ratios"
HOW = f"""Percentages are means over servers of their ratios, as of the time behind a discipline to that
behind drop-tail, with their intervals (95 %, Student's t on logarithms): they show how far servers differ,
which are taken for a sample of all. What one server does has [the interval of its own trials]({_RATIOS}). A
server counts where no trial of either side failed. An effect is clear where its whole interval is more than
{100 * NO_EFFECT - 100:.0f} % away from none. Of the disciplines that cut queueing over a path the text above
names the one that cuts it most, and the title the path with the most of that: both are chosen after the
fact."""

# Key of a pair → the cell that is compared with, and the one that is compared.
Pairs = Mapping[str, tuple[Cell, Cell]]


@dataclass(frozen=True)
class Effect:
    """The ratio of a measure with a change to that without it, of each server, and the mean of these."""

    mean: GeometricMean
    by_server: Mapping[str, Ratio]

    @property
    def is_shorter(self) -> bool:
        """Whether the whole interval is below no effect."""
        return self.mean.high is not None and self.mean.high < 1 / NO_EFFECT

    @property
    def is_longer(self) -> bool:
        """Whether the whole interval is above no effect."""
        return self.mean.low is not None and self.mean.low > NO_EFFECT

    @property
    def is_unclear(self) -> bool:
        """Whether it is neither, or has no interval."""
        return not self.is_shorter and not self.is_longer

    @property
    def is_small(self) -> bool:
        """Whether the interval is within 5 % of no effect, and the effect not clear."""
        low, high = self.mean.low, self.mean.high
        if low is None or high is None or not self.is_unclear:
            return False
        return low > 1 / (1 + MARGIN) and high < 1 + MARGIN

    @property
    def change(self) -> str:
        """`+72 % (+36 to +117)`; only the value without an interval, or if both ends round to it."""
        return _written(self.mean, lambda ratio: f"{_percent(ratio):+d}" if _percent(ratio) else "0")

    @property
    def size(self) -> str:
        """`72 % (36 to 117)` of a change that has a direction, the smaller end first."""
        return _written(self.mean, lambda ratio: str(abs(_percent(ratio))))


def _percent(ratio: float) -> int:
    return round(100 * (ratio - 1))


def _written(mean: GeometricMean, show: Callable[[float], str]) -> str:
    if mean.low is None or mean.high is None:
        return f"{show(mean.value)} %"
    ends = [show(end) for end in sorted((mean.low, mean.high), key=lambda end: abs(end - 1))]
    if mean.low < 1 < mean.high:
        ends = [show(mean.low), show(mean.high)]
    return f"{show(mean.value)} %" + (f" ({ends[0]} to {ends[1]})" if ends[0] != ends[1] else "")


def effect(pairs: Pairs, measured: str | Measured) -> Effect | None:
    """The effect on a measure, over the pairs that have it; None without one."""
    return _of({key: one for key, pair in pairs.items() if (one := cell_ratio(*pair, measured))})


def defaults(mine: Iterable[Cell]) -> list[str]:
    """The disciplines beside drop-tail with nothing set beside their defaults, in the order of the run."""
    return [name for name in in_order(mine) if name != TAIL and "," not in name]


def with_tail(mine: Sequence[Cell], name: str) -> dict[str, tuple[Cell, Cell]]:
    """Of each server whose trials all succeeded, the cell behind drop-tail and that behind a discipline."""
    return _paired(mine, TAIL, name)


def with_drops(mine: Sequence[Cell], servers: Iterable[str]) -> dict[tuple[str, str], tuple[Cell, Cell]]:
    """(server, discipline) → the cell in which a discipline drops, and that in which it marks."""
    chosen = set(servers)
    return {
        (server, name): pair
        for name in defaults(mine)
        for server, pair in _paired(mine, f"{name}{MARKING_OFF}", name).items()
        if server in chosen
    }


def marks(pairs: Mapping[tuple[str, str], tuple[Cell, Cell]], measured: str | Measured) -> Effect | None:
    """The effect of marks in place of drops: of each server the mean over disciplines, and their mean."""
    found: dict[str, list[float]] = {}
    for (server, _), pair in pairs.items():
        if one := cell_ratio(*pair, measured):
            found.setdefault(server, []).append(one.value)
    return _of({server: Ratio(mean) for server, values in found.items() if (mean := geometric_mean(values))})


def _of(ratios: Mapping[str, Ratio]) -> Effect | None:
    mean = GeometricMean.of([one.value for one in ratios.values()])
    return None if mean is None else Effect(mean, ratios)


def _paired(mine: Sequence[Cell], first: str, second: str) -> dict[str, tuple[Cell, Cell]]:
    """By server the cells behind both, with the same client and file; of several of a server the first."""
    by_key = {(one.key._replace(scenario=""), discipline(one)): one for one in mine}
    found: dict[str, tuple[Cell, Cell]] = {}
    for key in dict.fromkeys(key for key, _ in by_key):
        one, other = by_key.get((key, first)), by_key.get((key, second))
        if one is not None and other is not None and not one.failures and not other.failures:
            found.setdefault(key.server, (one, other))
    return found


def waits(record: Record) -> float | None:
    """The queueing delay that 99 % of the packets of a single flow do not exceed."""
    return record.forward_queueing_p99_ms


def sparse_waits(record: Record) -> float | None:
    """The same of the flow that starts second."""
    return record.flows[1].forward_queueing_p99_ms if len(record.flows) > 1 else None
