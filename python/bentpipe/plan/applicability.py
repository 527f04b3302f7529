"""The applicability of a plan's combinations, by the catalogues of stacks and proxies.

A proxy of TCP ends no connection of QUIC, and a stack has the protocols and test cases that its `stack.toml`
lists. What cannot be is *not applicable*: it has no trial, and its reason is said once for the whole plan.
What a program refuses itself, as an option that it does not know, shows in the trial.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bentpipe.errors import UsageError
from bentpipe.plan.campaign import Plan, PlanVariants
from bentpipe.plan.flows import PlannedFlow
from bentpipe.plan.treatments import Treatment
from bentpipe.plan.trial import Trial
from bentpipe.schema.manifest import NotApplicable, NotApplicableCell
from bentpipe.stacks import middleboxes
from bentpipe.stacks.model import MIGRATE, ROLES, TRANSPORTS
from bentpipe.testbed import TESTBEDS

_NAMED = 3  # of what a reason is about, before the others are counted


class Combination(NamedTuple):
    """The parts of a trial that decide whether it is applicable; its scenario and iteration do not."""

    workload: str
    treatment: str
    client: str
    server: str

    @classmethod
    def of(cls, one: Trial | NotApplicableCell) -> Combination:
        return cls(one.workload, one.treatment, one.client, one.server)


@dataclass(frozen=True)
class Reason:
    """The reason why a combination is not applicable. Reasons that differ in `about` alone are reported
    together.
    """

    form: str  # with a place for what it is about: `noq does not speak {}`
    about: str


def not_applicable(plan: Plan, variants: PlanVariants) -> list[NotApplicable]:
    """The combinations of a plan that are not applicable, as a manifest has them: an entry for each reason,
    the most frequent first. UsageError if nothing is left.
    """
    planned = plan.trials(tuple(variants.left_out))
    cells = Counter(one for _, one in {(trial.scenario, Combination.of(trial)) for trial in planned})
    asked = _Catalogue(plan, variants)
    groups: dict[str, dict[Combination, Reason]] = {}
    for one in dict.fromkeys(map(Combination.of, planned)):
        if why := asked.reason(one):
            groups.setdefault(why.form, {})[one] = why
    found = [
        NotApplicable(
            reason=_told(group.values()),
            combinations=sum(cells[one] for one in group),
            of=cells.total(),
            cells=[NotApplicableCell(**one._asdict()) for one in group],
        )
        for group in groups.values()
    ]
    if sum(one.combinations for one in found) == cells.total():
        raise UsageError(
            f"not applicable: {'; '.join(one.reason for one in found)}",
            "choose what goes together: `bentpipe stacks show NAME` says what a stack speaks",
        )
    return sorted(found, key=lambda one: -one.combinations)


def _told(reasons: Iterable[Reason]) -> str:
    """Reasons of one form in words."""
    every = list(dict.fromkeys(reasons))
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return every[0].form.format(", ".join(one.about for one in every[:_NAMED]) + more)


class _Catalogue:
    """The catalogues of stacks and proxies, asked about combinations of a plan."""

    def __init__(self, plan: Plan, variants: PlanVariants) -> None:
        self._variants, self._testbed = variants, TESTBEDS[plan.testbed]
        self._workloads = {str(one): one for one in plan.parsed_workloads}
        self._treatments = {str(one): one for one in plan.parsed_treatments}

    def reason(self, one: Combination) -> Reason | None:
        """Why it cannot be; None if it can."""
        planned = self._variants.flows(self._workloads[one.workload], one.client, one.server)
        treatment = self._treatments[one.treatment]
        every = itertools.chain(
            *(self._of_flow(flow, treatment) for flow in planned), self._of_hosts(planned)
        )
        return next(every, None)

    def _of_flow(self, flow: PlannedFlow, treatment: Treatment) -> Iterator[Reason]:
        """The reasons why a flow is not applicable, the plainest first."""
        ends = [flow.client.stack, flow.server.stack]
        for stack in ends:
            if self._testbed.is_elsewhere and (why := stack.not_portable):
                yield Reason("{}", why)
        testcase, wanted = flow.workload.testcase, flow.workload.alpn
        for stack in ends:
            if testcase not in stack.testcases:
                yield Reason(f"the stack.toml of {stack.name} does not list {{}}", testcase)
        if flow.client.stack.browser and (why := flow.workload.misfit):
            yield Reason(f"{flow.client.stack.name} cannot load {{}}", f"{flow.workload.title}: {why}")
        for stack in ends:
            if wanted is not None and wanted not in stack.alpn:
                yield Reason(f"{stack.name} does not speak {{}}", wanted)
        migrates = MIGRATE in flow.client.options and self._testbed.mode == "virtual-time"
        if migrates and not flow.server.stack.follows_paths:
            yield Reason("in virtual time no client can migrate with {}", flow.server.stack.name)
        spoken = flow.protocol
        if spoken is None:
            pair = f"{flow.client.stack.name} → {flow.server.stack.name}"
            yield Reason(f"no common protocol for {testcase}: {{}}", pair)
        # No proxy terminates connections inside a tunnel.
        elif treatment.proxies and treatment.tunnel is None:
            transport = TRANSPORTS[spoken]
            if not middleboxes.chains()[treatment.kind].passes(transport):
                yield Reason(f"{treatment.kind} with {{}}", f"{spoken} ({transport.upper()})")

    def _of_hosts(self, planned: list[PlannedFlow]) -> Iterator[Reason]:
        """Flows on one host that want it set up in more than one way."""
        for role in ROLES if self._testbed.flows_share_hosts else ():
            asked = {_settings(flow, role) for flow in planned} - {None}
            if len(asked) > 1:
                names = dict.fromkeys(getattr(flow, role).label for flow in planned)
                yield Reason(f"flows with different settings of TCP at the {role}: {{}}", " + ".join(names))


# Options of TCP that are of a socket or of a program.
_NOT_OF_THE_HOST = ("cc", "parallel", "record", "tls")


def _settings(flow: PlannedFlow, role: str) -> tuple[tuple[str, str], ...] | None:
    """The settings that a flow's program makes for its whole host; None for none."""
    if flow.transport != "tcp":
        return None
    options = (flow.client if role == "client" else flow.server).options.items()
    return tuple(sorted((name, value) for name, value in options if name not in _NOT_OF_THE_HOST))
