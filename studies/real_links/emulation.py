"""Pairs of stacks over a link, beside the same pairs over its emulation: whether their goodputs are equal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from bentpipe.analysis.cell_ratio import EQUIVALENCE
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.inference import CONFIDENCE, exact_test, ratio
from bentpipe.runs.records import Record
from bentpipe.study.claims import CANNOT_TELL, CONTRADICTS, MeasuredValue, equality
from bentpipe.study.markdown import percent

NEAR = 0.03  # as a share: goodputs that are nearer are equal
HOW = f"""Goodputs are equal within {percent(NEAR)} by two one-sided tests at 5 %: the interval of 90 % of
their ratio, of geometric means, lies within that (Welch, on logarithms: a link in use has no draws in common
with its emulation). They differ if it lies beyond, or if trials fail more often on one side by Fisher's exact
test at 5 %. Otherwise these trials cannot tell, nor where a trial failed. Intervals of goodputs are those of
means (95 %, Student's t)."""


@dataclass(frozen=True)
class EmulatedPair:
    """A pair of stacks, over a link and over the emulated one."""

    real: Cell
    emulated: Cell

    @property
    def name(self) -> str:
        return pair_name(self.real)

    @cached_property
    def verdict(self) -> str:
        """Whether the goodputs are equal within the margin: AGREES, CONTRADICTS or CANNOT_TELL."""
        both = [_succeeded(one) for one in (self.emulated, self.real)]
        if exact_test(*both) < 1 - CONFIDENCE:
            return CONTRADICTS
        if any(ok < trials for ok, trials in both):
            return CANNOT_TELL
        return equality(ratio(*self._goodputs, EQUIVALENCE), NEAR)

    @property
    def difference(self) -> MeasuredValue | None:
        """By how much goodput over the link is above that of the emulation, in percent."""
        found = ratio(*self._goodputs)
        if found is None:
            return None
        low, high = (None if end is None else 100 * (end - 1) for end in (found.low, found.high))
        return MeasuredValue(100 * (found.value - 1), low, high)

    @property
    def _goodputs(self) -> tuple[list[float], list[float]]:
        return self.emulated.values("goodput_bps"), self.real.values("goodput_bps")


def _succeeded(cell: Cell) -> tuple[int, int]:
    """How many trials succeeded, of those that the testbed carried out."""
    return len(cell.ok), sum(one.outcome != "invalid" for one in cell.records)


def pair_name(cell: Cell) -> str:
    """A pair in tables and pictures: `quinn → noq`."""
    return f"{cell.key.client} → {cell.key.server}"


def pairs(real: Iterable[Record], emulated: Iterable[Record]) -> list[EmulatedPair]:
    """The pairs of stacks that both have, with the same workload and treatment."""
    theirs = {_setting(cell): cell for cell in cells(list(emulated))}
    return [
        EmulatedPair(cell, other)
        for cell in cells(list(real))
        if (other := theirs.get(_setting(cell))) is not None
    ]


def _setting(cell: Cell) -> tuple[str, ...]:
    return cell.key.client, cell.key.server, cell.key.workload, cell.key.treatment
