"""A check's trials, in rounds: as many of each cell as its verdicts need to be sure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bentpipe.analysis.comparison import ComparedKey
from bentpipe.analysis.sequential import Rigour
from bentpipe.errors import UsageError
from bentpipe.execution.prepared_run import PreparedRun
from bentpipe.execution.run_execution import RunExecution
from bentpipe.execution.scheduler import Progress
from bentpipe.execution.settings import Settings
from bentpipe.objectives.changes import FoundChange, changes
from bentpipe.objectives.judge import Judgement, judge, verdict
from bentpipe.objectives.questions import (
    CellRecords,
    CheckPlan,
    Question,
    by_cell,
    cell_of,
    unique_keys,
)
from bentpipe.plan import campaign, scenarios
from bentpipe.plan.applicability import Combination, not_applicable
from bentpipe.plan.campaign import Plan, PlanVariants
from bentpipe.runs import manifest, run_folder
from bentpipe.runs.records import Record
from bentpipe.runs.run_folder import RunFolder
from bentpipe.schema.verdicts import FORMAT, Verdicts
from bentpipe.stacks.model import Stack


@dataclass(frozen=True)
class Laboratory:
    """The means by which the trials of a check are executed."""

    known: Mapping[str, Stack]
    named: tuple[str, ...]  # variants that the user named: each must be there
    stack_folders: tuple[str, ...]
    settings: Settings
    progress: Callable[[], Progress]  # what is shown of a round


@dataclass
class GrowingRun:
    """A run whose cells get more trials round by round. Make one with `open`, and close it."""

    folder: RunFolder
    manifest: manifest.Manifest
    variants: PlanVariants
    laboratory: Laboratory
    changed: list[str] = field(default_factory=list)  # stacks that are not what they were when it began

    @classmethod
    def open(cls, path: Path, plan: Plan, laboratory: Laboratory, resume: bool) -> GrowingRun:
        """A new run in `path`, or one that continues there. UsageError if that is of another plan, or a stack
        is missing.
        """
        variants = campaign.find_variants(plan, laboratory.known, laboratory.named)
        if not resume:
            resolved = scenarios.resolve_all(plan.cases())
            values = manifest.new(plan, resolved, variants, laboratory.stack_folders)
            run = cls(RunFolder.create(path), values, variants, laboratory)
            run.folder.write_manifest(values)  # from now on it can be resumed
            return run
        folder, values = RunFolder.reopen(path)
        if _asked(values.plan) != _asked(plan):
            folder.close()
            raise UsageError(f"--resume {path}: another check", "give the command that began it")
        changed = values.resumed_with(variants.stacks)
        values.not_applicable = not_applicable(plan, variants)
        values.resumed.append(manifest.now())
        run = cls(folder, values, variants, laboratory)
        run.changed = changed
        return run

    @property
    def records(self) -> Mapping[str, Record]:
        """The records of trials that ended."""
        return self.folder.records

    @property
    def cells(self) -> CellRecords:
        return by_cell(self.records.values())

    @property
    def planned(self) -> dict[ComparedKey, int]:
        """The planned number of trials of each cell."""
        return {cell_of(one): one.iterations for one in self.manifest.plan.cells}

    def why_not(self, key: ComparedKey) -> str | None:
        """The reason why a cell cannot have trials; None if it can."""
        wanted = Combination(key.workload, key.treatment, key.client, key.server)
        for one in self.manifest.not_applicable:
            if any(Combination.of(cell) == wanted for cell in one.cells):
                return one.reason
        return None

    def extend(self, plan: Plan) -> None:
        """Run the trials of `plan` that have no record yet. Errors are those of an execution."""
        self.manifest.options = plan.in_full
        self.folder.write_manifest(self.manifest)
        run = PreparedRun(self.folder, self.manifest, self.variants)
        RunExecution(run, self.laboratory.settings, self.laboratory.progress()).execute()


def _asked(plan: Plan) -> tuple[object, ...]:
    """The parts of a check's plan that stay the same from round to round."""
    keys = {(one.scenario, one.workload, one.treatment, one.client, one.server) for one in plan.cells}
    return plan.seed, plan.testbed, frozenset(keys)


@dataclass(frozen=True)
class Base:
    """The base that a check is compared with: an existing run, or one that grows beside it."""

    path: Path
    cells: Callable[[], CellRecords]
    grows: GrowingRun | None = None

    @classmethod
    def read(cls, path: Path, asked: CheckPlan, plan: Plan) -> Base:
        """An earlier run. UsageError if it has none of the cells, or other seeds, paths, or testbed."""
        values, records = run_folder.read(path)
        found = by_cell(records)
        shared = [key for key in unique_keys(asked.questions) if key in found]
        if not shared:
            raise UsageError(
                f"--against: {path} has none of the cells of this check",
                "give a run of the same suite, clients and servers",
            )
        if values.plan.seed != asked.seed:
            raise UsageError(
                f"--against: {path} has the seed {values.plan.seed}, this check {asked.seed}",
                f"add --seed {values.plan.seed}",
            )
        if values.plan.draws != plan.draws:
            raise UsageError(
                f"--against: {path} has {values.plan.draws} draws, a check {plan.draws} ones",
                f"compare with an earlier check, or make it with `bentpipe run --draws {plan.draws}`",
            )
        if values.plan.testbed != asked.testbed:
            raise UsageError(
                f"--against: {path} is of the testbed {values.plan.testbed}, this check of {asked.testbed}",
                f"add --testbed {values.plan.testbed}",
            )
        theirs = {label: state.scenario for label, state in values.scenarios.items()}
        labels = {key.scenario for key in shared}
        for one in scenarios.resolve_all(plan.cases()):
            if one.label in labels and theirs[one.label] != one.scenario:
                what = f"--against: {one.label} is another path in {path} than it is now"
                raise UsageError(what, "compare the scenarios in their manifests, or run the base again")
        return cls(path, lambda: found)

    @classmethod
    def growing(cls, run: GrowingRun) -> Base:
        """A base whose trials are run beside those of the check."""
        return cls(run.folder.path, lambda: run.cells, run)


@dataclass(frozen=True)
class CheckResult:
    """The result of a check."""

    judged: list[Judgement]  # one for each question
    changes: list[FoundChange]
    left_out: list[str]


@dataclass
class CheckRounds:
    """The rounds of a check. `run` brings it to its end."""

    asked: CheckPlan
    own: GrowingRun
    rigour: Rigour
    base: Base | None = None
    margin: float = 0.01

    @property
    def runs(self) -> list[GrowingRun]:
        """The check's run, and that of its base if it grows."""
        base = self.base.grows if self.base is not None else None
        return [self.own] if base is None else [self.own, base]

    def verdicts(self, found: CheckResult) -> Verdicts:
        """The verdicts of the check, as its file has them."""
        cells = self.own.cells
        return Verdicts(
            format=FORMAT,
            suite=self.asked.suite.name,
            title=self.asked.suite.title,
            source=self.asked.suite.source,
            testbed=self.asked.testbed,
            error=self.rigour.error,
            most=self.rigour.looks[-1],
            verdicts=[
                verdict(question, judged, cells)
                for question, judged in zip(self.asked.questions, found.judged, strict=True)
            ],
            against="" if self.base is None else str(self.base.path),
            margin=self.margin,
            changes=[one.change for one in found.changes],
            left_out=found.left_out,
        )

    def run(self, note: Callable[[str], None]) -> CheckResult:
        """Run trials until every verdict is sure, or has had its most; a `note` announces each further round.
        Errors are those of an execution.
        """
        keys = unique_keys(self.asked.questions)
        iterations = {key: max(self.rigour.looks[0], self.own.planned.get(key, 0)) for key in keys}
        while True:
            plan = self.asked.plan(iterations)
            for each in self.runs:
                each.extend(plan)
            found = self._judge(iterations)
            wanted = self._wanted(found)
            grown = {key: max(count, wanted.get(key, 0)) for key, count in iterations.items()}
            if grown == iterations:
                return found
            several = sum(count > iterations[key] for key, count in grown.items())
            note(f"{several} of {len(keys)} settings need more trials to be sure")
            iterations = grown

    def _judge(self, iterations: Mapping[ComparedKey, int]) -> CheckResult:
        """By the trials of this round: a base may have more. What an earlier look decided stands."""
        own, questions = _first(self.own.cells, iterations), self.asked.questions
        judged = [self._not_applicable(one) or judge(one, own, self.rigour) for one in questions]
        if self.base is None:
            return CheckResult(judged, [], [])
        base = _first(self.base.cells(), iterations)
        return CheckResult(judged, *changes(questions, base, own, self.rigour, self.margin))

    def _not_applicable(self, asked: Question) -> Judgement | None:
        """The judgement of a question whose trials are not applicable; None if they are."""
        if why := self.own.why_not(asked.cell):
            return Judgement("skipped", f"not applicable: {why}")
        if asked.reference is not None and (why := self.own.why_not(asked.reference)):
            return Judgement("undecided", f"the reference is not applicable: {why}")
        return None

    def _wanted(self, found: CheckResult) -> dict[ComparedKey, int]:
        """The number of trials in the next round of those cells that need more."""
        wanted: dict[ComparedKey, int] = {}

        def want(keys: Iterable[ComparedKey], count: int | None) -> None:
            for key in keys if count is not None else ():
                wanted[key] = max(wanted.get(key, 0), count or 0)

        for question, one in zip(self.asked.questions, found.judged, strict=True):
            want(question.cells, one.more)
        for each in found.changes:
            key, pairs = cell_of(each.change), each.change.pairs
            if self.base is not None and (self.base.grows or len(self.base.cells()[key]) > pairs):
                want([key], each.more)
        return wanted


def _first(found: CellRecords, iterations: Mapping[ComparedKey, int]) -> CellRecords:
    return {
        key: [record for record in records if record.iteration <= iterations[key]]
        for key, records in found.items()
        if key in iterations
    }
