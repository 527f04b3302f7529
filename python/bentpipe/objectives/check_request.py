"""The request for a check: what is asked of which stacks, and the runs that answer it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bentpipe import progress
from bentpipe.analysis.sequential import Rigour
from bentpipe.errors import UsageError
from bentpipe.execution.awake import is_virtual_machine
from bentpipe.execution.settings import Settings
from bentpipe.labels import variant
from bentpipe.objectives import suite
from bentpipe.objectives.questions import CheckPlan, questions
from bentpipe.objectives.rounds import Base, CheckRounds, GrowingRun, Laboratory
from bentpipe.plan.campaign import Plan
from bentpipe.runs.manifest import FILE as MANIFEST
from bentpipe.stacks import catalogue
from bentpipe.stacks.model import Stack
from bentpipe.stacks.time_limits import silence_s
from bentpipe.testbed import EMU

DEFAULT_STACK = "noq"
_BASE = "-base"  # behind the folder of a check: where the trials of --against-stack are


@dataclass(frozen=True)
class CheckRequest:
    """The request for a check, as the command line says it."""

    suite: str
    clients: tuple[str, ...]
    servers: tuple[str, ...]
    testbed: str
    seed: int | None
    most: int
    least: int | None
    against: Path | None
    against_stack: Path | None
    margin: float
    jobs: int | None
    out: Path | None
    resume: Path | None
    extra: tuple[Path, ...]

    def plan(self) -> CheckPlan:
        """The questions that are asked."""
        one = suite.load(self.suite)
        for role, named in (("client", self.clients), ("server", self.servers)):
            if named and not one.takes(role):
                raise UsageError(
                    f"--{role}: each objective of {one.name} names its {role}",
                    f"leave it out; `bentpipe objectives show {one.name}` says who takes part",
                )
        clients, servers = self.clients or (DEFAULT_STACK,), self.servers or (DEFAULT_STACK,)
        seed = one.seed if self.seed is None else self.seed
        found = questions(one, clients, servers)
        if not found:
            raise UsageError(f"{one.name}: each stack is compared with itself only", "name another stack")
        return CheckPlan(one, tuple(found), seed, self.testbed)

    def open_rounds(
        self, asked: CheckPlan, known: dict[str, Stack], place: Path, opened: ExitStack
    ) -> CheckRounds:
        """The check's run in the folder `place`, and its base; `opened` closes them."""
        plan = asked.plan(dict.fromkeys((key for one in asked.questions for key in one.cells), 1))
        base = Base.read(self.against, asked, plan) if self.against is not None else None
        others = None if self.against_stack is None else self._with_base(known, plan)
        resume = self.resume is not None
        own = GrowingRun.open(place, plan, self._laboratory(known, self.extra), resume)
        opened.callback(own.folder.close)
        if others is not None and self.against_stack is not None:
            beside = _beside(place)
            there = resume and (beside / MANIFEST).exists()
            run = GrowingRun.open(beside, plan, self._laboratory(others, (self.against_stack,)), there)
            opened.callback(run.folder.close)
            base = Base.growing(run)
        rigour = Rigour.of(asked.suite.error, self.most, self.least or asked.suite.least)
        return CheckRounds(asked, own, rigour, base, self.margin)

    def _with_base(self, known: dict[str, Stack], plan: Plan) -> dict[str, Stack]:
        """The stacks with that of --against-stack in place of the one of its name."""
        assert self.against_stack is not None
        (stack, *more) = catalogue.stacks_in(self.against_stack)
        if more:
            raise UsageError(f"--against-stack: {self.against_stack} has several stacks", "name one's folder")
        taking_part = {variant(label).stack for label in (*plan.clients, *plan.servers)}
        if stack.name not in taking_part:
            raise UsageError(
                f'--against-stack: {self.against_stack} is "{stack.name}", which takes no part',
                f"give the base the name of the stack that it stands for: {', '.join(sorted(taking_part))}",
            )
        return known | {stack.name: stack}

    def _laboratory(self, known: dict[str, Stack], folders: tuple[Path, ...]) -> Laboratory:
        awake = self.testbed == EMU.name and is_virtual_machine()
        return Laboratory(
            known=known,
            named=(*self.clients, *self.servers),
            stack_folders=tuple(str(folder.resolve()) for folder in folders),
            settings=Settings(jobs=self.jobs, silence_s=silence_s(), awake=awake),
            progress=progress.choose,
        )


def _beside(place: Path) -> Path:
    """The folder of the base of a check in the folder `place`."""
    if place.name:
        return place.parent / f"{place.name}{_BASE}"
    whole = place.resolve()
    return whole.with_name(f"{whole.name}{_BASE}")
