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
from typing import Any

import msgspec
from msgspec.structs import fields, replace

from bentpipe import labels, paths, strict
from bentpipe.errors import UsageError, one_of
from bentpipe.plan import flows, scenarios, treatments, workload
from bentpipe.plan.flows import AND
from bentpipe.plan.treatments import DIRECT, QUIC_PEP, Treatment
from bentpipe.plan.trial import Trial
from bentpipe.plan.workload import Workload
from bentpipe.schema.manifest import PAIRS, TRACES, Options
from bentpipe.stacks import catalogue, proxies
from bentpipe.stacks.model import Stack, Variant
from bentpipe.testbed import TESTBEDS


class Plan(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a campaign is to run, as the user wrote it (`schemas/manifest.toml`). It is kept in the manifest
    and decides what a resumed run does.
    """

    def changed(self, changes: Mapping[str, Any]) -> Plan:
        """The plan with what the command line says instead. A key that is set there is no longer swept; a
        scenario key set on both sides takes the value of the command line.
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
        """(scenario, settings) of everything that is run."""
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
        """The plan's workloads, with their further flows; UsageError for one in a manifest that is none."""
        return [
            dataclasses.replace(
                workload.parse(one, "workloads"), flows=tuple(text for text in beside.split(AND) if text)
            )
            for one in self.workloads
            for beside in self.flows or ("",)
        ]

    @property
    def in_full(self) -> Plan:
        """The plan with the chains in it that kinds of proxies have by default: these may change."""
        return replace(self, treatments=treatments.in_full(self.treatments, self.pep))

    @property
    def parsed_treatments(self) -> tuple[Treatment, ...]:
        """What stands between the ends; UsageError for one in a manifest that is none."""
        return tuple(
            treatments.parse(text, "treatments") for text in treatments.labels(self.treatments, self.pep)
        )

    def trials(self, left_out: Sequence[str] = ()) -> list[Trial]:
        """Every trial, in the order in which a table reads. Variants of the stacks `left_out` are passed
        over.
        """
        clients = [one for one in self.clients if labels.variant(one).stack not in left_out]
        servers = [one for one in self.servers if labels.variant(one).stack not in left_out]
        between = [str(one) for one in self.parsed_treatments]
        count = range(1, self.iterations + 1)
        axes = (self.labels(), self.parsed_workloads, between, clients, servers, count)
        return [
            Trial(
                campaign_seed=self.seed,
                scenario=scenario,
                workload=str(moved),
                size_bytes=moved.size_bytes,
                client=client,
                server=server,
                iteration=iteration,
                treatment=treatment,
                testbed=self.testbed,
            )
            for scenario, moved, treatment, client, server, iteration in itertools.product(*axes)
            if self.pairs == "all" or labels.variant(client).stack == labels.variant(server).stack
        ]


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
    table = strict.read(file)
    allowed = [field.name for field in fields(Plan) if field.name != "name"]
    table.allow(*allowed)
    values: dict[str, Any] = {"name": file.stem}
    for key in ("scenarios", "clients", "servers"):
        values[key] = unique(table.texts(key))
        if not values[key]:
            raise table.wrong(key, [], "at least one name")
        if not all(name.strip() for name in values[key]):
            raise table.wrong(key, list(values[key]), "names that are not empty")
    values["scenarios"] = unique([_from(file.parent, name) for name in values["scenarios"]])
    if "set" in table.values:
        values["set"] = tuple(table.texts("set"))
    sweep = table.table("sweep")
    for key, inner in sweep.values.items():
        if isinstance(inner, dict) and inner:
            full = f"{key}.{next(iter(inner))}"
            raise UsageError(
                f"{table.file}: sweep.{full}: the key is not in quotes", f'write "{full}" = ["…", "…"]'
            )
    values["sweep"] = {key: tuple(sweep.texts(key)) for key in sweep.values}
    for key, swept in values["sweep"].items():
        if not swept:
            raise sweep.wrong(key, [], "at least one value")
    for key in ("seed", "iterations"):
        if key in table.values:
            values[key] = _whole(table, key)
    if "workloads" in table.values:
        values["workloads"] = workload.canonical(table.texts("workloads"), f"{table.file}: workloads")
        if not values["workloads"]:
            raise table.wrong("workloads", [], 'at least one, as in "transfer:10MiB"')
    if "flows" in table.values:
        values["flows"] = flows.from_table(table.values["flows"], f"{table.file}: flows")
    values |= _treatments(table)
    values["title"] = table.text("title", "")
    for key, default, valid in (
        ("pairs", "all", PAIRS),
        ("trace", "none", TRACES),
        ("testbed", "sim", TESTBEDS),
    ):
        values[key] = table.text(key, default)
        if values[key] not in valid:
            raise UsageError(
                f'{table.file}: {key}: "{values[key]}" is not valid', one_of(values[key], valid, "one of")
            )
    values["qlog"] = table.values.get("qlog", False)
    if not isinstance(values["qlog"], bool):
        raise table.wrong("qlog", values["qlog"], "true or false")
    return Plan(**values)


def _treatments(table: strict.Table) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "treatments" in table.values:
        found["treatments"] = treatments.named(table.texts("treatments"), f"{table.file}: treatments")
        if not found["treatments"]:
            raise table.wrong("treatments", [], f"at least one of {', '.join((DIRECT, *proxies.discover()))}")
    if "pep" in table.values:
        found["pep"] = treatments.specs(table.texts("pep"), f"{table.file}: pep")
        if found["pep"] and QUIC_PEP not in found.get("treatments", ()):
            raise UsageError(
                f"{table.file}: pep: no treatment is {QUIC_PEP}",
                f'add treatments = ["{DIRECT}", "{QUIC_PEP}"]',
            )
    return found


def split(keys: str) -> list[str]:
    """The keys of a sweep that take the same value."""
    return [key.strip() for key in keys.split(",")]


def joined(keys: Iterable[str]) -> str:
    return ", ".join(keys)


def _from(folder: Path, name: str) -> str:
    """A scenario as a campaign file in `folder` names it; paths count from there."""
    return str(folder / name) if name.endswith(".toml") else name


def _whole(table: strict.Table, key: str) -> int:
    value = table.values[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < (1 if key == "iterations" else 0):
        raise table.wrong(key, value, "a whole number" + (" of at least 1" if key == "iterations" else ""))
    return value


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
class Cast:
    """The variants of a plan, and the stacks left out of it with the reason for each."""

    clients: dict[str, Variant]
    servers: dict[str, Variant]
    left_out: dict[str, str]

    @property
    def stacks(self) -> dict[str, Stack]:
        """All stacks that take part, by name."""
        both = [*self.clients.values(), *self.servers.values()]
        return {variant.stack.name: variant.stack for variant in both}


def cast(
    plan: Plan, known: Mapping[str, Stack], named: Collection[str], left_out: Mapping[str, str] | None = None
) -> Cast:
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
    return Cast(found["client"], found["server"], left_out)
