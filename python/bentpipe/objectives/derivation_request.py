"""The request to derive objectives: which trials show what TCP reaches, and their run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bentpipe import progress, workload
from bentpipe.errors import BentpipeError, Interrupted, UsageError
from bentpipe.execution.settings import Settings
from bentpipe.objectives import derivation
from bentpipe.objectives.derivation import SIZES_MB
from bentpipe.objectives.rounds import GrowingRun, Laboratory
from bentpipe.plan import treatments
from bentpipe.plan.campaign import Plan
from bentpipe.runs.records import Record
from bentpipe.schema.manifest import ScenarioState
from bentpipe.stacks import catalogue
from bentpipe.stacks.time_limits import silence_s


@dataclass(frozen=True)
class DerivationRun:
    """The trials from which objectives are derived."""

    path: Path
    scenarios: Mapping[str, ScenarioState]
    in_order: list[Record]


@dataclass(frozen=True)
class DerivationRequest:
    """The request to derive objectives, as the command line says it."""

    scenarios: tuple[str, ...]
    treatment: tuple[str, ...]
    stack: str
    size: str
    iterations: int
    seed: int
    jobs: int | None

    def plan(self) -> Plan:
        """The plan of the trials. UsageError if the file is smaller than the least of the objectives."""
        (moved,) = workload.canonical([f"transfer:{self.size}"], "--bytes")
        if workload.size(self.size, "--bytes") < SIZES_MB[0] * 10**6:
            least = f"{SIZES_MB[0]} MB"
            raise UsageError(f"--bytes: {self.size} is less than {least}", f"objectives begin with {least}")
        named = treatments.named(self.treatment or ("direct", "tcp-pep"), "--treatment")
        return Plan(
            name="derive",
            title="What TCP reaches",
            seed=self.seed,
            iterations=self.iterations,
            scenarios=self.scenarios,
            workloads=(moved,),
            treatments=derivation.expanded(named),
            clients=(self.stack.partition(":")[0],),
            servers=(self.stack,),
            trace="none",
        )

    def run(self, place: Path) -> DerivationRun:
        """Run the trials, in the folder `place`. BentpipeError if one fails, unless by its timeout."""
        plan = self.plan()
        laboratory = Laboratory(
            known=catalogue.discover(),
            named=(*plan.clients, *plan.servers),
            stack_folders=(),
            settings=Settings(jobs=self.jobs, silence_s=silence_s()),
            progress=progress.choose,
        )
        run = GrowingRun.open(place, plan, laboratory, resume=False)
        try:
            run.extend(plan)
        except (KeyboardInterrupt, Interrupted):
            raise Interrupted("interrupted", f"trials that ended are in {place}") from None
        finally:
            run.folder.close()
        records = list(run.records.values())
        odd = next((one for one in records if not one.ok and one.outcome != "transfer_timeout"), None)
        if odd is not None:
            raise BentpipeError(f"{odd.trial}: {odd.outcome.replace('_', ' ')}: {odd.detail}")
        order = {trial.id: number for number, trial in enumerate(plan.trials())}
        in_order = sorted(records, key=lambda one: order[one.trial])
        return DerivationRun(place, run.manifest.scenarios, in_order)
