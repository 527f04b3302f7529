"""The questions of a check: each objective of a suite, of each client and server, and the trials that answer
it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bentpipe import labels
from bentpipe.analysis.comparison import ComparedKey
from bentpipe.errors import UsageError
from bentpipe.objectives.suite import Objective, Setting, Suite
from bentpipe.plan.campaign import Plan, unique
from bentpipe.runs.records import Record
from bentpipe.schema.manifest import PlannedCell
from bentpipe.schema.verdicts import MeasuredChange

CellRecords = Mapping[ComparedKey, Sequence[Record]]  # in order of iteration


@dataclass(frozen=True)
class Question:
    """A question whether a client and a server meet an objective."""

    objective: Objective
    cell: ComparedKey
    reference: ComparedKey | None = None  # the cell that it is compared with

    @property
    def cells(self) -> tuple[ComparedKey, ...]:
        return (self.cell,) if self.reference is None else (self.cell, self.reference)


def questions(suite: Suite, clients: Sequence[str], servers: Sequence[str]) -> list[Question]:
    """Each objective with each client and server, unless it fixes them itself; each once, those of a pair one
    after the other. UsageError where one has no client or server.
    """
    found = []
    for objective in suite.objectives:
        own = objective.setting
        ends = [[own.client] if own.client else clients, [own.server] if own.server else servers]
        for option, given in zip(("--client", "--server"), ends, strict=True):
            if not given:
                raise UsageError(f'{option}: "{objective.name}" names none', f"add {option} STACK")
        found += [_question(objective, client, server) for client, server in itertools.product(*ends)]
    # A cell that differs from its reference in one end only is not compared with itself.
    found = [one for one in found if one.reference != one.cell]
    pairs = list(dict.fromkeys((one.cell.client, one.cell.server) for one in found))
    return sorted(dict.fromkeys(found), key=lambda one: pairs.index((one.cell.client, one.cell.server)))


def _question(objective: Objective, client: str, server: str) -> Question:
    other = objective.reference
    reference = None if other is None else _key(other, client, server)
    return Question(objective, _key(objective.setting, client, server), reference)


def _key(setting: Setting, client: str, server: str) -> ComparedKey:
    ends = (setting.client or client, setting.server or server)
    return ComparedKey(setting.label, setting.workload, setting.treatment, *ends)


@dataclass(frozen=True)
class CheckPlan:
    """The plan of a check, except for the number of trials."""

    suite: Suite
    questions: tuple[Question, ...]
    seed: int
    testbed: str

    def plan(self, iterations: Mapping[ComparedKey, int]) -> Plan:
        """The campaign with the given number of trials of each cell. Cells of one path follow each other."""
        settings = [one.setting for one in self.suite.objectives]
        settings += [one.reference for one in self.suite.objectives if one.reference]
        keys = unique_keys(self.questions)
        plan = Plan(
            name=f"check-{self.suite.name}",
            title=self.suite.title,
            seed=self.seed,
            iterations=max(iterations.values()),
            scenarios=unique([one.scenario for one in settings]),
            workloads=unique([key.workload for key in keys]),
            treatments=unique([labels.treatment(key.treatment).as_option for key in keys]),
            clients=unique([key.client for key in keys]),
            servers=unique([key.server for key in keys]),
            trace="analysis",
            testbed=self.testbed,
            cells=tuple(PlannedCell(**key._asdict(), iterations=iterations[key]) for key in keys),
        )
        plan.labels()  # two files of one name would be one path
        return plan


def unique_keys(asked: Iterable[Question]) -> list[ComparedKey]:
    """The cells that answer them, each once."""
    return list(dict.fromkeys(key for one in asked for key in one.cells))


def by_cell(records: Iterable[Record]) -> dict[ComparedKey, list[Record]]:
    """Records by their cells, in order of iteration."""
    found: dict[ComparedKey, list[Record]] = {}
    for one in sorted(records, key=lambda record: record.iteration):
        found.setdefault(cell_of(one), []).append(one)
    return found


def cell_of(one: Record | MeasuredChange | PlannedCell) -> ComparedKey:
    """The cell that it is of."""
    return ComparedKey(one.scenario, one.workload, one.treatment, one.client, one.server)
