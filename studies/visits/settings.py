"""Settings of the study on visits: a page over a path, with its first and its later visits; and what each
step from one kind of visit to the next saves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bentpipe import workload
from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import CellKey
from bentpipe.study.claims import MARGIN, MeasuredValue
from bentpipe.study.markdown import literal
from bentpipe.study.means import difference
from bentpipe.study.quantiles import median_of
from bentpipe.study.source import Source
from bentpipe.testbed import SIM
from bentpipe.workload.http import TITLES
from bentpipe.workload.page.visit import FIRST, PageVisit

# A step → the visits without it and with it; of several the first that a setting has.
STEPS = {
    "a ticket": ((FIRST, "resumed"),),
    "early data": (("resumed", "early"),),
    "a cache": (("resumed", "resumed-cached"), ("early", "early-cached")),
}
TICKET, EARLY, CACHE = STEPS


@dataclass(frozen=True)
class VisitSetting:
    """A page over a version of HTTP, a path and a pair: its cells by kind of visit."""

    key: CellKey  # of the first visit
    cells: Mapping[str, Cell]
    repeats: bool  # whether a trial repeats: in virtual time, over a path without anything drawn at random

    @property
    def visit(self) -> PageVisit:
        found = workload.known(self.key.workload)
        assert isinstance(found, PageVisit)
        return found

    @property
    def http(self) -> str:
        """As in `HTTP/3`."""
        return TITLES[self.visit.http]

    @property
    def pair(self) -> str:
        """The pair, and through which proxies: `noq → caddy`."""
        through = "" if self.key.treatment == DIRECT else f", {literal(self.key.treatment)}"
        return f"{self.key.client} → {self.key.server}{through}"

    def whole(self, visit: str) -> Cell | None:
        """The cell of a kind of visit; None without one, or where a trial failed."""
        found = self.cells.get(visit)
        return None if found is None or found.failures else found

    def seconds(self, visit: str) -> float | None:
        """The median page load time on a kind of visit; None where a trial failed."""
        return median_of(self.whole(visit), "plt_s")

    def saved_s(self, step: str) -> MeasuredValue | None:
        """Seconds of page load time that a step saves; None where it was not measured."""
        for before, after in STEPS[step]:
            first, later = self.whole(before), self.whole(after)
            if first is not None and later is not None:
                found = difference(first.values("plt_s"), later.values("plt_s"))
                return None if found is None else self._exact(found)
        return None

    def has(self, step: str) -> bool:
        """Whether the visits with a step and without it were run, also if trials failed."""
        return any(self.cells.keys() >= {*visits} for visits in STEPS[step])

    def ratio(self, step: str) -> MeasuredValue | None:
        """Page load time with a step / without it."""
        found = (self.between(*visits) for visits in STEPS[step])
        return next((one for one in found if one is not None), None)

    def between(self, before: str, after: str) -> MeasuredValue | None:
        """Page load time on one kind of visit / on another; None where a trial of either failed."""
        first, later = self.whole(before), self.whole(after)
        if first is None or later is None:
            return None
        found = MeasuredValue.of(cell_ratio(first, later, "plt_s"))
        return None if found is None else self._exact(found)

    def _exact(self, one: MeasuredValue) -> MeasuredValue:
        """The value of single trials with itself as both ends, where they repeat."""
        is_exact = self.repeats and one.low is None
        return MeasuredValue(one.value, one.value, one.value) if is_exact else one


def shortens(ratio: MeasuredValue | None) -> bool:
    """Whether all of an interval is shorter by more than 5 %."""
    return ratio is not None and ratio.high is not None and ratio.high < 1 / (1 + MARGIN)


def lengthens(ratio: MeasuredValue | None) -> bool:
    """Whether all of an interval is longer by more than 5 %."""
    return ratio is not None and ratio.low is not None and ratio.low > 1 + MARGIN


def keeps(ratio: MeasuredValue | None) -> bool:
    """Whether all of an interval is within 5 %."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    return ratio.low >= 1 / (1 + MARGIN) and ratio.high <= 1 + MARGIN


def visit_of(one: Cell) -> PageVisit | None:
    """The page and the kind of visit of a cell; None if it loads no page."""
    found = workload.known(one.key.workload)
    return found if isinstance(found, PageVisit) else None


def settings(known: Iterable[Cell], runs: Sequence[Source]) -> list[VisitSetting]:
    """The settings of these cells, which load pages, in the order of the runs."""
    found: dict[CellKey, dict[str, Cell]] = {}
    for one in known:
        visit = visit_of(one)
        assert visit is not None
        key = one.key._replace(workload=str(dataclasses.replace(visit, visit=FIRST)))
        found.setdefault(key, {})[visit.visit] = one
    return [VisitSetting(key, cells, _repeats(key, runs)) for key, cells in found.items()]


def _repeats(key: CellKey, runs: Sequence[Source]) -> bool:
    states = (one.manifest.scenarios.get(key.scenario) for one in runs)
    summary = next((one.summary for one in states if one is not None), {})
    drawn = [
        summary.get(f"{way}_{what}")
        for way in ("forward", "return")
        for what in ("loss", "rate_changes", "delay")
    ]
    return key.testbed == SIM.name and bool(summary) and all(one in (None, "none") for one in drawn)
