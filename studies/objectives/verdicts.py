"""The verdicts on every pair of stacks, by the test of `bentpipe check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe.analysis.sequential import Rigour
from bentpipe.objectives import suite
from bentpipe.objectives.judge import judge, verdict
from bentpipe.objectives.questions import CellRecords, Question, by_cell, questions
from bentpipe.objectives.suite import Objective, Suite
from bentpipe.runs.records import Record
from bentpipe.schema.verdicts import ObjectiveVerdict
from bentpipe.study.claims import MeasuredValue

SUITES = ("quic-4-sat", "kuhn-2020")
CLIENT = "noq"  # the client of most pairs, without options
FEW = 0.1  # the error of a verdict that rests on fewer trials than its suite's error needs

AskedFor = tuple[Suite, Objective]


@dataclass(frozen=True)
class Pair:
    """A client and a server."""

    client: str
    server: str

    @property
    def title(self) -> str:
        """The server, and the client where it is not the usual one."""
        if self.client == CLIENT:
            return self.server
        ends = "both ends" if self.client == self.server else f"client {self.client}"
        return f"{self.server}, {ends}"


@dataclass(frozen=True)
class ObjectivesMet:
    """How many of some objectives a pair meets: those whose verdict is sure, and those that may be, too."""

    met: int
    undecided: int  # or not run
    asked: int

    @property
    def most(self) -> int:
        return self.met + self.undecided

    @property
    def share(self) -> MeasuredValue:
        """The sure ones in percent, and the interval from these to all that may be met."""
        met, most = (100 * one / self.asked for one in (self.met, self.most))
        return MeasuredValue(met, met, most)

    @property
    def span(self) -> str:
        """`16 to 21`; `16` if all are decided."""
        return f"{self.met} to {self.most}" if self.undecided else f"{self.met}"

    def is_surely_fewer(self, other: ObjectivesMet) -> bool:
        """Whether the other one meets more, however the undecided verdicts would end."""
        return self.most < other.met


def is_upload(objective: Objective) -> bool:
    return objective.setting.workload.startswith("upload")


@dataclass(frozen=True)
class PairVerdicts:
    """The verdicts of the suites on every pair."""

    records: Sequence[Record]

    @cached_property
    def suites(self) -> list[Suite]:
        return [suite.load(name) for name in SUITES]

    @cached_property
    def asked(self) -> list[AskedFor]:
        """The objectives that were run with some pair."""
        ran = {(name, objective) for _, name, objective in self.known}
        every = [(one, each) for one in self.suites for each in one.objectives]
        return [(one, each) for one, each in every if (one.name, each.name) in ran]

    @cached_property
    def pairs(self) -> list[Pair]:
        """Those that meet most first."""
        found = dict.fromkeys(Pair(one.client, one.server) for one in self.records)
        return sorted(found, key=lambda one: -self.met(one, self.asked).met)

    @cached_property
    def known(self) -> dict[tuple[Pair, str, str], ObjectiveVerdict]:
        """By pair, suite, and the objective's name; of those only that ran."""
        cells, found = by_cell(self.records), {}
        for pair in dict.fromkeys(Pair(one.client, one.server) for one in self.records):
            for one in self.suites:
                for asked in questions(one, [pair.client], [pair.server]):
                    if asked.cell in cells:
                        found[pair, one.name, asked.objective.name] = _verdict(asked, cells, one.error)
        return found

    def of(self, pair: Pair, asked: Suite, objective: Objective) -> ObjectiveVerdict | None:
        return self.known.get((pair, asked.name, objective.name))

    def met(self, pair: Pair, among: Iterable[AskedFor]) -> ObjectivesMet:
        """How many of these objectives a pair meets."""
        found = [self.of(pair, *one) for one in among]
        counts = Counter("" if one is None else one.outcome for one in found)
        met = counts["pass"]
        return ObjectivesMet(met, len(found) - met - counts["fail"], len(found))

    def ranked(self, *, uploads: bool) -> list[tuple[Pair, ObjectivesMet]]:
        """The pairs that ran objectives of one direction, those that meet most first."""
        among = self.moving(uploads=uploads)
        ran = [one for one in self.pairs if any(self.of(one, *each) for each in among)]
        return sorted(
            ((one, self.met(one, among)) for one in ran), key=lambda one: (-one[1].met, -one[1].most)
        )

    def moving(self, *, uploads: bool) -> list[AskedFor]:
        """The objectives of one direction that were run."""
        return [(one, each) for one, each in self.asked if is_upload(each) == uploads]

    def meeting(self, asked: Suite, objective: Objective) -> list[tuple[Pair, ObjectiveVerdict]]:
        """The pairs that meet an objective, by their medians."""
        known = ((pair, self.of(pair, asked, objective)) for pair in self.pairs)
        met = [(pair, one) for pair, one in known if one is not None and one.outcome == "pass"]
        return sorted(met, key=lambda one: one[1].median or 0.0)

    def missing(self, asked: Suite, objective: Objective) -> list[Pair]:
        """The pairs that surely miss an objective."""
        known = ((pair, self.of(pair, asked, objective)) for pair in self.pairs)
        return [pair for pair, one in known if one is not None and one.outcome == "fail"]


def trials_for(error: float) -> int:
    """The least number of trials that decides a verdict with this error: all of them must agree."""
    return Rigour.of(error, 1).looks[0]


def _verdict(asked: Question, cells: CellRecords, error: float) -> ObjectiveVerdict:
    trials = len(cells[asked.cell])
    rigour = Rigour.of(error if trials >= trials_for(error) else FEW, trials)
    return verdict(asked, judge(asked, cells, rigour), cells)
