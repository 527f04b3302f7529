"""The verdicts on every pair of stacks, by the test of `bentpipe check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe.analysis.sequential import Rigour
from bentpipe.objectives import suite
from bentpipe.objectives.judge import judge, verdict
from bentpipe.objectives.questions import CellRecords, Question, by_cell, questions
from bentpipe.objectives.suite import Objective, Suite
from bentpipe.runs.records import Record
from bentpipe.schema.verdicts import ObjectiveVerdict

SUITES = ("quic-4-sat", "kuhn-2020")
FEW = 0.1  # the error of a verdict that rests on fewer trials than its suite's error needs


@dataclass(frozen=True)
class Pair:
    """A client and a server."""

    client: str
    server: str

    @property
    def title(self) -> str:
        """The server, and the client where it is not the usual one."""
        return f"{self.server}, both ends" if self.client == self.server != "noq" else self.server


@dataclass(frozen=True)
class Answers:
    """The verdicts of the suites."""

    records: Sequence[Record]

    @cached_property
    def suites(self) -> list[Suite]:
        return [suite.load(name) for name in SUITES]

    @cached_property
    def pairs(self) -> list[Pair]:
        """Those that meet most first."""
        found = dict.fromkeys(Pair(one.client, one.server) for one in self.records)
        return sorted(found, key=lambda one: -self.met(one))

    @cached_property
    def verdicts(self) -> dict[tuple[Pair, str, str], ObjectiveVerdict]:
        """By pair, suite, and the objective's name; of those only that ran."""
        cells, found = by_cell(self.records), {}
        for pair in dict.fromkeys(Pair(one.client, one.server) for one in self.records):
            for one in self.suites:
                for asked in questions(one, [pair.client], [pair.server]):
                    if asked.cell in cells:
                        found[pair, one.name, asked.objective.name] = _verdict(asked, cells, one.error)
        return found

    def of(self, pair: Pair, asked: Suite, objective: Objective) -> ObjectiveVerdict | None:
        return self.verdicts.get((pair, asked.name, objective.name))

    def tally(self, pair: Pair, *names: str) -> Counter[str]:
        """How many verdicts of these suites a pair has, by outcome."""
        known = self.verdicts.items()
        return Counter(one.outcome for (mine, name, _), one in known if mine == pair and name in names)

    def met(self, pair: Pair) -> int:
        return self.tally(pair, *SUITES)["pass"]

    def meeting(self, asked: Suite, objective: Objective) -> list[tuple[Pair, ObjectiveVerdict]]:
        """The pairs that meet an objective, the fastest first."""
        known = ((pair, self.of(pair, asked, objective)) for pair in self.pairs)
        met = [(pair, one) for pair, one in known if one is not None and one.outcome == "pass"]
        return sorted(met, key=lambda one: one[1].median or 0.0)


def _verdict(asked: Question, cells: CellRecords, error: float) -> ObjectiveVerdict:
    trials = len(cells[asked.cell])
    enough = trials >= Rigour.of(error, 1).looks[0]
    rigour = Rigour.of(error if enough else FEW, trials)
    return verdict(asked, judge(asked, cells, rigour), cells)
