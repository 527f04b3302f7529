"""Two flows of TCP and QUIC through one link: who gets what, by congestion control and queue, and whether
real time says the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study import dots
from bentpipe.study.claims import MeasuredValue, is_narrow
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting, folded
from bentpipe.study.markdown import literal, mbit, path, percent, several, table
from bentpipe.study.quantiles import median

from .runs import (
    FairnessRuns,
    first_share,
    further,
    goodputs,
    is_whole,
    measured,
    share_of_first,
    unmeasured,
)

PICTURE = "fairness-tcp.svg"
_EVEN = 50  # percent: what each of two flows should get
_LITTLE = 25  # percent: half of an even share
_CAPTION = f"""What the flow that starts a second earlier receives of what both do, in percent, beside each
other one, with the interval of its mean; {_EVEN} is an even share."""
_TEXT = """Two flows through one link, of TCP and QUIC, each with the others and with itself. The tables show
the share of the row's flow in what both receive while both are there: where it starts a second before the
column's / where it starts a second after it. 50 % is an even share; medians over the trials. The goodputs
themselves are in the tables below."""
_REAL = """The same in real time, with this machine's kernel, where it has been run: goodputs in Mbit/s of the
first flow and of the second, medians over the trials."""


@dataclass(frozen=True)
class TwoFlows:
    """All trials of two flows over one path, of which either may be of TCP."""

    cell: Cell
    first: str
    second: str

    @property
    def scenario(self) -> str:
        return self.cell.key.scenario

    @property
    def share(self) -> float:
        """Of the first, between 0 and 1: the median."""
        return (median(map(share_of_first, measured(self.cell))) or 0.0) / 100

    @cached_property
    def mean(self) -> MeasuredValue | None:
        """The mean of the first one's share, in percent."""
        return first_share(self.cell)

    @property
    def goodputs(self) -> str:
        each = zip(*map(goodputs, measured(self.cell)), strict=True)
        return marked(" / ".join(mbit(median(values)) for values in each), self.cell)


@dataclass(frozen=True)
class BothOrders:
    """A sender beside another over a path: its share in percent where it starts first, and where second."""

    scenario: str
    sender: str
    other: str
    first: MeasuredValue
    second: MeasuredValue
    is_whole: bool  # whether the flows were measured in every trial of both orders
    note: str = ""  # how many trials were not, of an order in which some were not

    @property
    def mean(self) -> float:
        return (self.first.value + self.second.value) / 2

    def is_below(self, limit: float) -> bool:
        """Whether both intervals are, and no trial is unknown."""
        ends = [one.high for one in (self.first, self.second)]
        return self.is_whole and all(one is not None and one < limit for one in ends)

    def is_above(self, limit: float) -> bool:
        """Whether both intervals are, and no trial is unknown."""
        ends = [one.low for one in (self.first, self.second)]
        return self.is_whole and all(one is not None and one > limit for one in ends)


def front(runs: FairnessRuns, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    mine = _two(runs.cells)
    picture = None
    if mine:
        file = folder / PICTURE
        unit, title = "share of the flow that starts first, percent", "how TCP and QUIC share a path"
        dots.draw(_panels(mine), file, unit, title, limits=(0, 102), border=_EVEN)
        picture = Picture(file, "The share of the first of two flows, with intervals", _CAPTION)
    found = both_orders(mine)
    return Front(_finding(runs, found), _answer(runs, mine, found), picture, _advice(runs, found))


def _panels(mine: Sequence[TwoFlows]) -> list[DotPanel]:
    panels = []
    for scenario in dict.fromkeys(one.scenario for one in mine):
        here = [one for one in mine if one.scenario == scenario]
        rows = [
            DotRow(
                first,
                {
                    f"beside {one.second}": one.mean
                    for one in here
                    if one.first == first and one.mean is not None
                },
            )
            for first in dict.fromkeys(one.first for one in here)
        ]
        panels.append(DotPanel(path(scenario).replace("\\", ""), rows))
    return panels


def both_orders(mine: Sequence[TwoFlows]) -> list[BothOrders]:
    """Each sender beside each other one, over each path on which either started first."""
    known = {(one.scenario, one.first, one.second): one for one in mine}
    found = []
    for (scenario, sender, other), first in known.items():
        second = known.get((scenario, other, sender))
        if sender == other or second is None or first.mean is None or second.mean is None:
            continue
        each = (first.cell, second.cell)
        note = next((text for one in each if (text := unmeasured(one))), "")
        found.append(
            BothOrders(
                scenario, sender, other, first.mean, _rest(second.mean), all(map(is_whole, each)), note
            )
        )
    return found


def _rest(one: MeasuredValue) -> MeasuredValue:
    """What the first leaves to the second."""
    low, high = (None if end is None else 100 - end for end in (one.high, one.low))
    return MeasuredValue(100 - one.value, low, high)


def _finding(runs: FairnessRuns, found: Sequence[BothOrders]) -> str:
    """The title: who gets least of both orders, beside whom, over the usual path, and what it gets where it
    starts first; an interval that is left out is narrow.
    """
    mine = [one for one in found if one.scenario == runs.usual]
    if not mine:
        return "What flows of TCP and QUIC leave each other that share a path"
    least = min(mine, key=lambda one: one.mean)
    over = f" over {path(runs.usual)}"
    begin, end = f"{literal(least.sender)} gets ", f" beside {literal(least.other)}"
    shown = [f"{begin}{least.first.written(0, ' %')} where it starts first{end}"]
    if is_narrow(least.first):
        shown.append(f"{begin}{least.first.value:.0f} % where it starts first{end}")
    known = [f"{one}{where}{least.note}" for one in shown for where in (over, "")]
    return fitting(*known, f"Who gets least of two flows{over}")


def _answer(runs: FairnessRuns, mine: Sequence[TwoFlows], found: Sequence[BothOrders]) -> list[str]:
    sentences = []
    if found:
        least = min(
            (one for one in found if one.scenario == runs.usual), key=lambda one: one.mean, default=None
        )
        if least is not None:
            sentences.append(
                f"Over {path(runs.usual)} {literal(least.sender)} gets {least.first.written(0, ' %')} where "
                f"it starts a second before {literal(least.other)}, and {least.second.written(0, ' %')} "
                f"where it starts a second after it{least.note}."
            )
        pairs = len(found) // 2
        starved = [one for one in found if one.is_below(_LITTLE)]
        sentences.append(
            f"In {len(starved)} of {several(pairs, 'pair')} of different senders, over "
            f"{several(len(runs.scenarios), 'path')}, one gets less than {_LITTLE} % whichever starts first."
        )
    alike = [one.mean for one in mine if one.first == one.second and one.mean is not None]
    if alike:
        least_even, most = min(one.value for one in alike), max(one.value for one in alike)
        sentences.append(f"Of two flows of one sender the earlier one gets {least_even:.0f} to {most:.0f} %.")
    return sentences or [f"{several(len(runs.cells), 'setting')} are in the tables below."]


def _advice(runs: FairnessRuns, found: Sequence[BothOrders]) -> str:
    """The lines that the intervals of this run show: who starves whom, and who gets along, on every path."""
    lines = []
    pairs = list(dict.fromkeys((one.sender, one.other) for one in found))
    for is_little, words in (
        (True, f"gets less than {_LITTLE} % over every path, whichever starts first"),
        (False, f"get {_LITTLE} % each or more over every path, whichever starts first"),
    ):
        for sender, other in pairs:
            here = [one for one in found if (one.sender, one.other) == (sender, other)]
            if len(here) < len(runs.scenarios):
                continue
            if is_little and all(one.is_below(_LITTLE) for one in here):
                lines.append(f"- Beside {literal(other)}, {literal(sender)} {words}.")
            is_fair = all(one.is_above(_LITTLE) for one in here) and all(
                one.first.high is not None and one.first.high < 100 - _LITTLE
                and one.second.high is not None and one.second.high < 100 - _LITTLE
                for one in here
            )  # fmt: skip
            if not is_little and is_fair and pairs.index((sender, other)) < pairs.index((other, sender)):
                lines.append(f"- {literal(sender)} and {literal(other)} {words}.")
    return "\n".join(lines)


def sections(runs: FairnessRuns) -> list[str]:
    """The share of each flow, over each path."""
    mine = _two(runs.cells)
    parts = ["## Who gets what", _TEXT]
    for each in dict.fromkeys(one.scenario for one in mine):
        matrix = _matrix([one for one in mine if one.scenario == each], each)
        parts += folded(f"Shares over {path(each)}", matrix)
    return [*parts, *_against(mine, _two(runs.real))]


def _two(cells: Sequence[Cell]) -> list[TwoFlows]:
    found = []
    for cell in cells:
        others = further(cell.key.workload)
        if len(others) == 1:
            found.append(TwoFlows(cell, cell.key.server, others[0].server or cell.key.server))
    return found


def _matrix(mine: Sequence[TwoFlows], scenario: str) -> str:
    shares = {(one.first, one.second): one.share for one in mine}
    rows = list(dict.fromkeys(one.first for one in mine))
    columns = [one for one in rows if any((other, one) in shares for other in rows if other != one)]
    lines = []
    for row in rows:
        texts = []
        for column in columns:
            first, second = shares.get((row, column)), shares.get((column, row))
            after = None if second is None else 1 - second
            alone = row == column  # there is no other order among equals
            shown = [first] if alone else [first, after]
            texts.append("-" if first is None and after is None else " / ".join(map(percent, shown)))
        lines.append([literal(row), *texts])
    return table([path(scenario), *(literal(one) for one in columns)], lines)


def _against(virtual: Sequence[TwoFlows], real: Sequence[TwoFlows]) -> list[str]:
    known = {(one.scenario, one.first, one.second): one for one in virtual}
    rows = [
        [path(one.scenario), literal(one.first), literal(one.second), here.goodputs, one.goodputs,
         f"{percent(here.share)} / {percent(one.share)}", str(len(measured(one.cell)))]
        for one in real
        if (here := known.get((one.scenario, one.first, one.second))) is not None
    ]  # fmt: skip
    if not rows:
        return []
    head = ["path", "first", "second", "virtual", "real", "first's share, virtual / real", "trials, real"]
    return ["## In real time", _REAL, *folded(several(len(rows), "pair"), table(head, rows, left=3))]
