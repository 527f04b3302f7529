"""Bentpipe's sender compared with each other one over the same path, and what that makes of a setting.

A difference counts where the whole interval is beyond 2 %, and chance could not have made it; two senders are
equal where two one-sided tests say so. All else cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from bentpipe.analysis.cell_ratio import EQUIVALENCE, cell_ratio
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.comparison import FALSE_DISCOVERIES
from bentpipe.analysis.inference import Ratio, adjusted
from bentpipe.study.claims import AGREES, NO_EFFECT, MeasuredValue, equality
from bentpipe.study.markdown import bytes_as, literal, path
from bentpipe.study.own_sender import OURS
from bentpipe.study.source import Source, pooled

FASTER, EQUAL, CANNOT_TELL, SLOWER = "faster", "equal", "cannot tell", "slower"
FAILS = "fails"  # of a setting: trials of Bentpipe's sender fail where another one completes all
LONG_MS = 100  # from this RTT on the sender begins with a flight of its own


@dataclass(frozen=True)
class SenderComparison:
    """Another sender's time divided by that of Bentpipe's, over the same path and with the same file."""

    ours: Cell
    other: Cell
    ratio: Ratio
    p: float | None  # adjusted over all comparisons of the page

    @cached_property
    def verdict(self) -> str:
        """Whether Bentpipe's sender is faster, slower or equal, or it cannot be told."""
        low, high = self.ratio.low, self.ratio.high
        if low is None or high is None:
            return CANNOT_TELL
        if self.p is not None and self.p <= FALSE_DISCOVERIES:
            if low > NO_EFFECT:
                return FASTER
            if high < 1 / NO_EFFECT:
                return SLOWER
        near = cell_ratio(self.ours, self.other, "completion_s", EQUIVALENCE)
        return EQUAL if equality(near, NO_EFFECT - 1) == AGREES else CANNOT_TELL

    @property
    def server(self) -> str:
        return self.other.key.server

    @property
    def measured(self) -> MeasuredValue:
        return MeasuredValue(self.ratio.value, self.ratio.low, self.ratio.high)

    def text(self) -> str:
        """In bold where one of both is faster."""
        text = self.measured.written()
        return f"**{text}**" if self.verdict in (FASTER, SLOWER) else text


@dataclass(frozen=True)
class SenderSetting:
    """A path and a size: Bentpipe's sender, and each other one."""

    ours: Cell
    others: tuple[Cell, ...]
    compared: tuple[SenderComparison, ...]  # with those of which no trial failed
    rtt_ms: float | None

    @property
    def result(self) -> str:
        """Bentpipe's sender is faster than every other one that completes all trials, or slower than one of
        them, or equal to one and faster than the others, or fails where another one does not; or none of that
        is shown.
        """
        if self.ours.failures:
            return CANNOT_TELL if all(one.failures for one in self.others) else FAILS
        verdicts = {one.verdict for one in self.compared}
        if SLOWER in verdicts:
            return SLOWER
        if CANNOT_TELL in verdicts or not verdicts:
            return CANNOT_TELL
        return EQUAL if EQUAL in verdicts else FASTER

    @property
    def best(self) -> SenderComparison | None:
        """The comparison with the other sender that takes least time in the mean."""
        return min(self.compared, key=lambda one: one.ratio.value, default=None)

    @property
    def is_long(self) -> bool | None:
        """Whether the path's RTT is long; None if it is not known."""
        return None if self.rtt_ms is None else self.rtt_ms >= LONG_MS

    @property
    def size(self) -> str:
        return bytes_as(self.ours.records[0].size_bytes)

    @property
    def path(self) -> str:
        return path(self.ours.key.scenario)

    @property
    def name(self) -> str:
        """`1 MB over sat`."""
        return f"{self.size} over {self.path}"


@dataclass(frozen=True)
class SenderRuns:
    """The runs of the page, and what they compare."""

    sources: tuple[Source, ...]

    @cached_property
    def cells(self) -> list[Cell]:
        return cells(pooled(self.sources))

    @cached_property
    def others(self) -> list[str]:
        return list(dict.fromkeys(one.key.server for one in self.cells if one.key.server != OURS))

    @cached_property
    def settings(self) -> list[SenderSetting]:
        """Every path and size over which Bentpipe's sender and another one ran, in the order of the runs."""
        ours = {_place(one): one for one in self.cells if one.key.server == OURS}
        compared = self._compared(ours)
        found = []
        for place, mine in ours.items():
            others = tuple(one for one in self.cells if _place(one) == place and one is not mine)
            here = tuple(one for one in compared if one.ours is mine)
            if others:
                found.append(SenderSetting(mine, others, here, self._rtt_ms(mine.key.scenario)))
        return found

    @cached_property
    def compared(self) -> list[SenderComparison]:
        return [one for setting in self.settings for one in setting.compared]

    def _compared(self, ours: dict[tuple[str, str], Cell]) -> list[SenderComparison]:
        """Of cells without failed trials: the others are the fast ones."""
        found = []
        for one in self.cells:
            mine = ours.get(_place(one))
            if mine is None or one is mine or one.failures or mine.failures:
                continue
            if (ratio := cell_ratio(mine, one, "completion_s")) is not None:
                found.append((mine, one, ratio))
        chances = adjusted([ratio.p for *_, ratio in found])
        return [SenderComparison(*one, p) for one, p in zip(found, chances, strict=True)]

    def _rtt_ms(self, scenario: str) -> float | None:
        known = (
            one.manifest.scenarios[scenario] for one in self.sources if scenario in one.manifest.scenarios
        )
        found = next((one.summary.get("rtt_ms") for one in known), None)
        return float(found) if isinstance(found, int | float) else None


def _place(cell: Cell) -> tuple[str, str]:
    return cell.key.scenario, cell.key.workload


def most_frequent(compared: Iterable[SenderComparison], verdict: str) -> list[str]:
    """The other senders of most comparisons with a verdict; none without one."""
    counts: dict[str, int] = {}
    for one in compared:
        if one.verdict == verdict:
            counts[one.server] = counts.get(one.server, 0) + 1
    most = max(counts.values(), default=0)
    return [literal(one) for one, count in counts.items() if count == most]
