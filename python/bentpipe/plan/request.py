"""The request for a plan: a campaign, and what the command line changes of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from bentpipe.errors import UsageError
from bentpipe.plan import campaign, flows, scenarios
from bentpipe.plan.campaign import Plan
from bentpipe.plan.scenarios import Scenario
from bentpipe.plan.treatments import DIRECT
from bentpipe.workload.http import UPGRADE

DEFAULT_CAMPAIGN = "demo"
# Who loads pages, by their ALPN, where nobody is named.
PAGE_STACKS = {"h3": "noq", "h2": "linux", "http/1.1": "linux"}  # none has an upgrade at both ends


@dataclass(frozen=True)
class PlanRequest:
    """The request for a plan. Errors name the option, or the campaign file, that a value is from."""

    name: str | None  # of the campaign, or its file; None: options change the default
    changes: dict[str, Any]  # keys of a plan
    protocols: tuple[str, ...] = ()  # --protocol: versions of HTTP
    short: bool = False  # the workload was given as --bytes

    @property
    def file(self) -> str:
        """The campaign, as a user knows it."""
        return self.name or DEFAULT_CAMPAIGN

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that the command line names."""
        return (*self.changes.get("clients", ()), *self.changes.get("servers", ()))

    @property
    def names_scenarios(self) -> bool:
        """Whether it says itself which scenarios there are, or its campaign does."""
        return self.name is not None or "scenarios" in self.changes

    def where(self, key: str, option: str) -> str:
        """Where the value of `key` was given, for errors: the option, or the campaign file."""
        return option if key in self.changes else f"{self.file}: {key}"

    @property
    def where_workloads(self) -> str:
        """Where the workloads were given."""
        return self.where("workloads", "--bytes" if self.short else "--workload")

    def plan(self) -> Plan:
        """The plan that is asked for."""
        plan = self.changed(campaign.load(DEFAULT_CAMPAIGN if self.name is None else self.name))
        if self.name is not None:
            return plan
        if not self.changes.keys().isdisjoint({"scenarios", "clients", "servers"}):
            plan = replace(plan, name="run", title="")  # it is the demo no longer
        if self.changes.keys().isdisjoint({"clients", "servers", "pairs"}):
            plan = _with_http(plan)
        if self.changes and "trace" not in self.changes:
            # Who changes something wants to look closely; and in real time no capture can be made later.
            plan = replace(plan, trace="median")
        return plan

    def changed(self, plan: Plan) -> Plan:
        """A plan, changed as the command line says."""
        changed = plan.changed(self.changes)
        return changed.over(self.protocols, "--protocol") if self.protocols else changed

    def resolve(self, plan: Plan) -> list[Scenario]:
        """The plan's scenarios in full. In errors, a setting of the campaign file is not called an option."""
        try:
            return scenarios.resolve_all(plan.cases())
        except scenarios.ScenarioError as error:
            raise UsageError(self._without_options(str(error), plan), error.hint) from error

    def _without_options(self, text: str, plan: Plan) -> str:
        """The text of an error, in which settings of the campaign file have their names there."""
        for key, swept in plan.sweep.items():
            for value in swept:
                for one in campaign.split(key):
                    text = text.replace(
                        f"--set {one}={value}", f'sweep."{key}" = "{value}" of the campaign {self.file}'
                    )
        for setting in plan.set:
            if setting not in self.changes.get("set", ()):
                text = text.replace(f"--set {setting}", f'set "{setting}" of the campaign {self.file}')
        return text

    def with_time(self, plan: Plan, resolved: Sequence[Scenario]) -> tuple[Plan, int | None]:
        """The plan with the timeout, in seconds, that transfers of a given duration need, and that timeout.
        As it is (None) where they need none, a timeout is set already, or a scenario has a longer one.
        """
        settings = (*plan.set, *(one for key in plan.sweep for one in campaign.split(key)))
        ends = [
            flow.start_ms + lasts_ms
            for moved in plan.parsed_workloads
            for flow in (flows.FurtherFlow(), *flows.of(moved))
            if (lasts_ms := (flow.workload or moved).duration_ms) is not None
        ]
        needed_s = math.ceil(max(ends, default=0) / 1000)
        is_set = any(one.partition("=")[0].strip() == "timeout" for one in settings)
        if is_set or any(one.summary["timeout_s"] >= needed_s for one in resolved):
            return plan, None
        return replace(plan, set=(*plan.set, f"timeout={needed_s}s")), needed_s

    def check_times(self, plan: Plan, resolved: Sequence[Scenario]) -> None:
        """UsageError unless every flow begins, and ends where its duration is given, before the timeout."""
        for scenario, moved in itertools.product(resolved, plan.parsed_workloads):
            timeout_s = scenario.summary["timeout_s"]
            for flow in (flows.FurtherFlow(), *flows.of(moved)):
                lasts_ms = (flow.workload or moved).least_ms
                if flow.start_ms + (lasts_ms or 1) <= timeout_s * 1000:
                    continue
                further = flow != flows.FurtherFlow()
                where = self.where("flows", "--flow") if further else self.where("workloads", "--workload")
                ends = "begins" if lasts_ms is None else "ends"
                raise UsageError(
                    f'{where}: "{flow if further else moved.alone}" {ends} after {scenario.label}\'s timeout '
                    f"of {timeout_s:g} s",
                    'choose an earlier time, or set a later timeout, as in --set "timeout=300 s"',
                )


def check_paths(plan: Plan, resolved: Sequence[Scenario]) -> None:
    """UsageError where middleboxes are to stand on one of several paths."""
    several = next((one for one in resolved if one.summary.get("paths")), None)
    inside = next((one for one in plan.parsed_treatments if str(one) != DIRECT), None)
    if several is None or inside is None:
        return
    names = ", ".join(path["name"] for path in several.summary["paths"])
    raise UsageError(
        f"not applicable: {several.label} with {inside}: it has several paths ({names}), and middleboxes "
        "stand on one",
        "run it with --treatment direct, or choose a scenario with one path for the others",
    )


def _with_http(plan: Plan) -> Plan:
    """A plan whose pages are loaded by stacks that speak HTTP, each from its own server."""
    spoken = [one.alpn for one in plan.parsed_workloads]
    if not any(spoken):
        return plan
    if not all(spoken):
        raise UsageError(
            "--workload: pages and files are of different stacks",
            "name those that are to have them: --client noq,linux --server noq,linux",
        )
    if UPGRADE in spoken:
        raise UsageError(
            f"--protocol {UPGRADE}: browsers alone load pages so, in real time",
            "add --testbed emu --client chromium,firefox --server caddy",
        )
    speak = campaign.unique([PAGE_STACKS[alpn] for alpn in spoken if alpn])
    return replace(plan, clients=speak, servers=speak, pairs="self")
