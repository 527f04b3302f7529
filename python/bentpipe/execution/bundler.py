"""Bundles of a plan's trials, and what can be said of a trial before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bentpipe import __version__
from bentpipe.execution.bundle import of_stack, of_treatment, of_tunnel
from bentpipe.execution.guard import Demand
from bentpipe.plan import flows
from bentpipe.plan.campaign import PlanVariants
from bentpipe.plan.flows import PlannedFlow
from bentpipe.plan.trial import Trial
from bentpipe.runs.manifest import Manifest
from bentpipe.schema.bundle import FORMAT, Bundle, BundleFlow
from bentpipe.stacks import middleboxes, state
from bentpipe.stacks.model import PROTOCOLS
from bentpipe.testbed import TESTBEDS
from bentpipe.workload import Workload

_NS_PER_MS = 10**6


BREACH = "breaks the contract"  # what the detail of a record says of a program that does


class Bundler:
    """The maker of bundles, which knows a run's plan, its scenarios and its stacks."""

    def __init__(self, manifest: Manifest, variants: PlanVariants, silence_s: int) -> None:
        plan = manifest.plan
        self._manifest, self._plan, self._variants, self._silence_s = manifest, plan, variants, silence_s
        self._workloads = {str(one): one for one in plan.parsed_workloads}
        self._treatments = {str(one): one for one in plan.parsed_treatments}
        self._testbed = TESTBEDS[plan.testbed]
        self._versions: Mapping[str, str | None] = {}

    def ask_versions(self) -> None:
        """Ask the stacks for their versions, where programs do not report them in each trial."""
        if not self._testbed.programs_say_versions:
            self._versions = {name: state.of(stack).version for name, stack in self._variants.stacks.items()}

    @property
    def files(self) -> dict[str, int]:
        """The files of all trials, by name, and their sizes."""
        return _files(self._moved)

    @property
    def contents(self) -> dict[str, bytes]:
        """The contents of those files whose bytes are not arbitrary."""
        return {name: content for one in self._moved for name, content in one.contents.items()}

    @property
    def _moved(self) -> list[Workload]:
        """The workloads of all trials, and of all flows beside theirs."""
        further = [flow.workload for flow in flows.every(self._workloads.values()) if flow.workload]
        return [*self._workloads.values(), *further]

    def bundle(self, trial: Trial) -> Bundle:
        """The bundle of a trial."""
        planned = self._flows(trial)
        return Bundle(
            format=FORMAT,
            bentpipe=__version__,
            trial=trial.id,
            testbed=trial.testbed,
            ip=trial.ip,
            scenario=self._manifest.scenarios[trial.scenario].scenario,
            flows=[self._flow(one) for one in planned],
            proxies=of_treatment(self._treatments[trial.treatment]),
            tunnel=of_tunnel(self._treatments[trial.treatment].tunnel),
            files=_files([flow.workload for flow in planned]),
            seed=trial.seed,
            trace=self._plan.trace != "none",
            qlog=self._plan.qlog,
            silence_s=self._silence_s,
        )

    def demand(self, trial: Trial) -> Demand:
        """The share of the machine that a trial takes in real time."""
        flows = self._flows(trial)
        stacks = [variant.stack for flow in flows for variant in (flow.client, flow.server)]
        return Demand(max(one.weight for one in stacks), max(one.processors for one in stacks))

    def repeats(self, trial: Trial) -> bool:
        """Whether every execution of a trial must give the same packets."""
        treatment = self._treatments[trial.treatment]
        if treatment.proxies and not middleboxes.chains()[treatment.kind].deterministic:
            return False
        stacks = [one.stack for flow in self._flows(trial) for one in (flow.client, flow.server)]
        return self._testbed.repeats and all(one.deterministic and not one.repeats_except for one in stacks)

    def breach(self, trial: Trial) -> str | None:
        """The reason why a trial is not to be trusted: one of its ends breaks the contract."""
        known = self._manifest.contract_breaches
        for flow in self._flows(trial):
            for role, variant in (("client", flow.client), ("server", flow.server)):
                name = f"{variant.stack.name} as {role}"
                if name in known:
                    return f"{name} {BREACH}: {known[name]}"
        return None

    def _flows(self, trial: Trial) -> list[PlannedFlow]:
        """The flows of a trial, its own first."""
        return self._variants.flows(self._workloads[trial.workload], trial.client, trial.server)

    def _flow(self, flow: PlannedFlow) -> BundleFlow:
        client, server, moved = flow.client, flow.server, flow.workload
        lasts_ms = moved.duration_ms
        return BundleFlow(
            testcase=moved.testcase,
            alpn=flow.protocol or PROTOCOLS[0],
            requests=list(moved.requests),
            page=list(moved.resources),
            live=moved.live,
            frames=moved.frames,
            start_ns=flow.start_ms * _NS_PER_MS,
            duration_ns=None if lasts_ms is None else lasts_ms * _NS_PER_MS,
            middlebox=dict(flow.middlebox),
            client=of_stack(client, self._versions.get(client.stack.name)),
            server=of_stack(server, self._versions.get(server.stack.name)),
        )


def _files(workloads: Sequence[Workload]) -> dict[str, int]:
    """The files of workloads."""
    return {name: size for one in workloads for name, size in one.files.items()}
