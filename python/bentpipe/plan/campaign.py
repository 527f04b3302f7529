"""Campaigns: a plan in TOML, changed by the command line, that expands into trials.

A campaign file has the keys of `Plan` except the name, all of them optional but `scenarios`, `clients` and
`servers`; `[sweep]` gives a list of values for keys of the scenarios, and every combination of them is run.
Keys that are joined by a comma take the same value.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from bentpipe import labels, paths, strict, workload
from bentpipe.errors import UsageError, one_of
from bentpipe.labels import VPN
from bentpipe.plan import flows, scenarios, treatments
from bentpipe.plan.flows import AND, FurtherFlow, PlannedFlow
from bentpipe.plan.treatments import DIRECT, QUIC_PEP, Treatment
from bentpipe.plan.trial import Trial
from bentpipe.schema.manifest import Draws, Options, Pairs, PlannedCell, Traces
from bentpipe.stacks import catalogue, middleboxes
from bentpipe.stacks.model import Stack, Variant
from bentpipe.testbed import TESTBEDS
from bentpipe.workload import Workload

DEFAULT_DRAWS: Draws = "common"  # of a campaign that does not say: cells are there to be compared


@dataclass(frozen=True)
class _Ends:
    """The ends of a trial, and what is between them."""

    treatment: str
    client: str
    server: str


class Plan(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The plan of a campaign, as the user wrote it (`schemas/manifest.toml`). It is kept in the manifest and
    decides what a resumed run does.
    """

    def changed(self, changes: Mapping[str, Any]) -> Plan:
        """The plan, changed as the command line says. A key that is set there is no longer swept; a scenario
        key set on both sides takes the value of the command line.
        """
        new = replace(self, **changes)
        keys = [setting.partition("=")[0].strip() for setting in changes.get("set", ())]
        kept = [one for one in self.set if one.partition("=")[0].strip() not in keys]
        left = {
            joined(key for key in split(keys_) if key not in keys): values
            for keys_, values in new.sweep.items()
        }
        return replace(
            new,
            set=(*kept, *changes.get("set", ())),
            sweep={key: values for key, values in left.items() if key},
        )

    def settings(self) -> list[tuple[str, ...]]:
        """The settings of a scenario, once per combination of the sweep."""
        swept = [
            [tuple(f"{key}={value}" for key in split(keys)) for value in values]
            for keys, values in self.sweep.items()
        ]
        return [
            (*self.set, *itertools.chain.from_iterable(combination))
            for combination in itertools.product(*swept)
        ]

    def cases(self) -> list[tuple[str, tuple[str, ...]]]:
        """The (scenario, settings) of everything that is run."""
        return [(name, settings) for name in self.scenarios for settings in self.settings()]

    def labels(self) -> list[str]:
        """The labels of `cases`, in their order; UsageError if two of them are the same."""
        for name in self.scenarios:
            if name.endswith(".toml") and "," in Path(name).name:
                raise UsageError(
                    f'the scenario file "{name}" has a comma in its name',
                    "labels use commas: rename the file",
                )
        found = [scenarios.label(*case) for case in self.cases()]
        for label in found:
            if found.count(label) > 1:
                raise UsageError(f'two scenarios would be called "{label}"', "name or set each of them once")
        return found

    @property
    def parsed_workloads(self) -> list[Workload]:
        """The plan's workloads, with their further flows; UsageError for an invalid one in a manifest."""
        return [
            dataclasses.replace(
                workload.parse(one, "workloads"), flows=tuple(text for text in beside.split(AND) if text)
            )
            for one in self.workloads
            for beside in self.flows or ("",)
        ]

    def over(self, versions: Sequence[str], where: str) -> Plan:
        """The plan, its pages over these versions of HTTP. UsageError, naming `where`, if it has none."""
        own = [workload.parse(one, "workloads") for one in self.workloads]
        return replace(self, workloads=unique([str(one) for one in workload.over(own, versions, where)]))

    @property
    def in_full(self) -> Plan:
        """The plan, with the default chains of kinds of proxies written out: these may change."""
        return replace(self, treatments=treatments.in_full(self.treatments, self.pep))

    @property
    def parsed_treatments(self) -> tuple[Treatment, ...]:
        """The plan's treatments; UsageError for an invalid one in a manifest."""
        return tuple(
            treatments.parse(text, "treatments") for text in treatments.labels(self.treatments, self.pep)
        )

    def trials(self, left_out: Sequence[str] = ()) -> list[Trial]:
        """Every trial, in the order of a table's rows. Variants of the stacks `left_out` are passed over."""
        if self.cells:
            return [
                self._trial(one.scenario, workload.parse(one.workload, "cells"), one, iteration)
                for one in self.cells
                if not {labels.variant(end).stack for end in (one.client, one.server)} & set(left_out)
                for iteration in range(1, one.iterations + 1)
            ]
        clients = [one for one in self.clients if labels.variant(one).stack not in left_out]
        servers = [one for one in self.servers if labels.variant(one).stack not in left_out]
        between = [str(one) for one in self.parsed_treatments]
        count = range(1, self.iterations + 1)
        axes = (self.labels(), self.parsed_workloads, between, clients, servers, count)
        return [
            self._trial(scenario, moved, _Ends(treatment, client, server), iteration)
            for scenario, moved, treatment, client, server, iteration in itertools.product(*axes)
            if self.pairs == "all" or labels.variant(client).stack == labels.variant(server).stack
        ]

    def _trial(self, scenario: str, moved: Workload, ends: _Ends | PlannedCell, iteration: int) -> Trial:
        return Trial(
            campaign_seed=self.seed,
            scenario=scenario,
            workload=str(moved),
            size_bytes=moved.size_bytes,
            client=ends.client,
            server=ends.server,
            iteration=iteration,
            treatment=ends.treatment,
            testbed=self.testbed,
            ip=self.ip,
            draws=self.draws,
        )


Names = Annotated[
    tuple[Annotated[str, msgspec.Meta(pattern=r"\S")], ...],
    msgspec.Meta(min_length=1, description="at least one name, and none that is empty"),
]


class CampaignFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a campaign file."""

    scenarios: Names
    clients: Names
    servers: Names
    title: str = ""
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    draws: Draws = DEFAULT_DRAWS
    iterations: Annotated[int, msgspec.Meta(ge=1)] = 1
    workloads: Annotated[
        tuple[str, ...], msgspec.Meta(min_length=1, description='at least one, as in ["transfer:10MiB"]')
    ] = ()
    flows: Any = None
    treatments: tuple[str, ...] | None = None
    pep: tuple[str, ...] = ()
    pairs: Pairs = "all"
    trace: Traces = "none"
    testbed: str = "sim"
    link: str = ""
    ip: Literal[4, 6] = 4
    qlog: bool = False
    set: tuple[str, ...] = ()
    sweep: dict[
        str, Annotated[tuple[str, ...], msgspec.Meta(min_length=1, description='values: ["…", "…"]')]
    ] = {}


def load(argument: str) -> Plan:
    """A campaign given by name or as a path to a .toml file."""
    file = Path(argument)
    if not argument.endswith(".toml"):
        known = paths.campaigns()
        if argument not in known:
            raise UsageError(
                f'unknown campaign "{argument}"',
                one_of(argument, sorted(known), "a path to a .toml file, or campaigns"),
            )
        file = known[argument]
    if file.is_dir():
        raise UsageError(
            f"{file} is a folder, not a campaign file", "give a .toml file, or a campaign's name"
        )
    values = strict.load(file)
    _check_quotes(values.get("sweep"), file)
    found = strict.convert(values, CampaignFile, str(file))
    # What it leaves out is as in a plan, but for the draws: a plan without is from before there was a choice.
    said = {key: getattr(found, key) for key in (*values, "draws")}
    for key in ("scenarios", "clients", "servers"):
        said[key] = unique(said[key])
    said["scenarios"] = unique([_from(file.parent, name) for name in found.scenarios])
    if found.workloads:
        paths_from_here = [workload.from_folder(file.parent, one) for one in found.workloads]
        said["workloads"] = workload.canonical(paths_from_here, f"{file}: workloads")
    if found.link:
        said["link"] = str(file.parent / found.link)
    if "flows" in values:
        said["flows"] = flows.from_table(found.flows, f"{file}: flows")
    if found.testbed not in TESTBEDS:
        hint = one_of(found.testbed, TESTBEDS, "one of")
        raise UsageError(f'{file}: testbed: "{found.testbed}" is not valid', hint)
    return Plan(name=file.stem, **{**said, **_treatments(found, file)})


def _check_quotes(sweep: object, file: Path) -> None:
    """UsageError for a swept key with a dot in it that is not in quotes."""
    for key, inner in sweep.items() if isinstance(sweep, dict) else ():
        if isinstance(inner, dict) and inner:
            full = f"{key}.{next(iter(inner))}"
            raise UsageError(
                f"{file}: sweep.{full}: the key is not in quotes", f'write "{full}" = ["…", "…"]'
            )


def _treatments(found: CampaignFile, file: Path) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if found.treatments is not None:
        if not found.treatments:
            wanted = f"at least one of {', '.join((DIRECT, *middleboxes.chains(), VPN))}"
            raise strict.wrong(file, "treatments", [], wanted)
        said["treatments"] = treatments.named(found.treatments, f"{file}: treatments")
    if found.pep:
        said["pep"] = treatments.specs(found.pep, f"{file}: pep")
        if QUIC_PEP not in said.get("treatments", ()):
            raise UsageError(
                f"{file}: pep: no treatment is {QUIC_PEP}",
                f'add treatments = ["{DIRECT}", "{QUIC_PEP}"]',
            )
    return said


def split(keys: str) -> list[str]:
    """The keys of a sweep that take the same value."""
    return [key.strip() for key in keys.split(",")]


def joined(keys: Iterable[str]) -> str:
    return ", ".join(keys)


def _from(folder: Path, name: str) -> str:
    """A scenario as a campaign file in `folder` names it; paths count from there."""
    return str(folder / name) if name.endswith(".toml") else name


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """The names in their order, each once."""
    return tuple(dict.fromkeys(names))


def difference(old: Plan, new: Plan) -> str | None:
    """The first key in which two plans differ and both values, in words; None if they are the same."""
    before, after = (json.loads(msgspec.json.encode(one.in_full)) for one in (old, new))
    for key, value in before.items():
        if key not in ("name", "title") and value != after[key]:
            return f"{key}: the run has {value!r}, now it is {after[key]!r}"
    return None


@dataclass(frozen=True)
class PlanVariants:
    """The variants of a plan as they are here, and the stacks left out of it with the reason for each."""

    clients: dict[str, Variant]
    servers: dict[str, Variant]
    left_out: dict[str, str]

    @property
    def stacks(self) -> dict[str, Stack]:
        """All stacks that take part, by name."""
        both = [*self.clients.values(), *self.servers.values()]
        return {variant.stack.name: variant.stack for variant in both}

    def flows(self, own: Workload, client: str, server: str) -> list[PlannedFlow]:
        """The flows of a trial of these ends with the workload `own`; the one that is measured first."""
        return [
            PlannedFlow(
                client=self.clients[flow.client or client],
                server=self.servers[flow.server or server],
                workload=flow.workload or own,
                start_ms=flow.start_ms,
                middlebox=flow.middlebox_options,
            )
            for flow in (FurtherFlow(), *flows.of(own))
        ]


def find_variants(
    plan: Plan, known: Mapping[str, Stack], named: Collection[str], left_out: Mapping[str, str] | None = None
) -> PlanVariants:
    """Find the plan's variants among the stacks that are known, passing over those of `left_out`.

    A stack that cannot be started is left out as well, unless its variant is among `named`, those that the
    command line asks for, or that of a further flow: then it is a UsageError.
    """
    left_out = dict(left_out or {})
    found: dict[str, dict[str, Variant]] = {"client": {}, "server": {}}
    further: dict[str, list[str]] = {"client": [], "server": []}
    for flow in flows.every(plan.parsed_workloads):
        for role, label in flow.variants.items():
            further[role].append(label)
    for role, named_in_plan in (("client", plan.clients), ("server", plan.servers)):
        for label in (*named_in_plan, *further[role]):
            name = labels.variant(label).stack
            if name in left_out and label not in further[role]:
                continue
            if name not in known:
                hint = "; for one that is elsewhere, name its folder with --stacks"
                raise UsageError(f'unknown stack "{name}"', one_of(name, known, "stacks") + hint)
            variant = catalogue.variant(label, known)
            if role not in variant.stack.roles:
                raise UsageError(
                    f"{label}: {variant.stack.name} has no role {role}", "leave it out of this list"
                )
            why = variant.stack.missing(TESTBEDS[plan.testbed].mode)
            if why and (label in named or label in further[role]):
                raise UsageError(why, variant.stack.how_to_install)
            if why:
                left_out[variant.stack.name] = why
            else:
                found[role][label] = variant
    if not found["client"] or not found["server"]:
        raise UsageError(
            "no stack is left to run: " + "; ".join(left_out.values()),
            "install some with `bentpipe stacks install`",
        )
    if not plan.trials(tuple(left_out)):
        raise UsageError(
            'pairs: "self": no stack that can be started is both a client and a server',
            'name one as both, or write "all"',
        )
    return PlanVariants(found["client"], found["server"], left_out)
