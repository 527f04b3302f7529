"""The manifest of a run: `manifest.json`, written before the first trial and again when the run ends.

It is what a run resumes from: the plan as the user wrote it, and every scenario in full, so that a scenario
file that has changed since cannot mix two paths in one run. It also says what the results were made with.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bentpipe
from bentpipe import origin, state
from bentpipe.campaign import Cast, Plan
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.records import Record
from bentpipe.scenarios import Scenario
from bentpipe.stacks import Stack

FILE = "manifest.json"
_DAMAGED = "restore the file, or repeat the run; it may also be of another version of Bentpipe"


@dataclass
class Manifest:
    """What is known of a run beside its records."""

    campaign: str
    title: str
    options: dict[str, Any]  # the plan, as `Plan.to_mapping` has it
    command: str  # the first one; resumed runs add to `resumed`
    started: str  # UTC
    versions: dict[str, Any]
    host: dict[str, Any]
    scenarios: dict[str, dict[str, Any]]  # label → {"scenario", "summary"}
    stacks: dict[str, dict[str, Any]]
    left_out: dict[str, str]  # stack → why
    stack_folders: list[str] = field(default_factory=list)  # of --stacks and BENTPIPE_STACKS
    cwd: str = ""  # where the command ran: relative paths in `options` and `command` count from there
    finished: str | None = None  # UTC; null: not finished
    resumed: list[str] = field(default_factory=list)  # when, UTC
    awake: bool = False  # in real time: idle processors were kept from sleeping
    contract_breaches: dict[str, str] = field(
        default_factory=dict
    )  # "stack as role" → what it did instead of 127

    def resumed_with(self, stacks: Mapping[str, Stack]) -> list[str]:
        """Keep what the `stacks` are now, where it is not what they were; their names. A manifest of an older
        version does not know what they were.
        """
        changed = []
        for name, stack in stacks.items():
            entry, now = self.stacks.get(name, {}), state.installation(stack)
            known = [entry.get("installation"), *entry.get("resumed_with", [])]
            if known[-1] is not None and now is not None and _same(known[-1]) != _same(now):
                entry.setdefault("resumed_with", []).append(now)
                changed.append(name)
        return changed

    @property
    def plan(self) -> Plan:
        return Plan.from_mapping(self.options)

    def write(self, folder: Path) -> None:
        """Write it to `folder`, replacing an older one only once it is complete. OSError if that fails."""
        partial = folder / f"{FILE}.partial"
        with partial.open("w") as file:
            json.dump(asdict(self), file, indent=1)
            file.write("\n")
        partial.replace(folder / FILE)


def new(plan: Plan, scenarios: Iterable[Scenario], cast: Cast, stack_folders: Sequence[str] = ()) -> Manifest:
    """The manifest of a run that starts now."""
    return Manifest(
        campaign=plan.name,
        title=plan.title,
        options=plan.to_mapping(),
        command=shlex.join(["bentpipe", *sys.argv[1:]]),
        started=now(),
        versions=_versions(),
        host=_host(),
        scenarios={one.label: {"scenario": one.scenario, "summary": one.summary} for one in scenarios},
        stacks={
            name: {
                "title": stack.title,
                "deterministic": stack.deterministic,
                "notes": stack.notes,
                "installation": state.installation(stack),
            }
            for name, stack in sorted(cast.stacks.items())
        },
        left_out=cast.left_out,
        stack_folders=list(stack_folders),
        cwd=str(Path.cwd()),
    )


def read(folder: Path) -> Manifest:
    """The manifest of the run in `folder`; UsageError if there is no such folder, BentpipeError if it has no
    manifest that can be understood.
    """
    path = folder / FILE
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder", "give the folder of a run")
    try:
        values = json.loads(path.read_text())
    except FileNotFoundError:
        raise BentpipeError(f"{folder} is no run: it has no {FILE}", "give the folder of a run") from None
    except (OSError, ValueError) as error:
        raise BentpipeError(f"{path}: cannot be read: {error}", _DAMAGED) from error
    wrong = _wrong(values) or _wrong_scenario(values)
    if wrong:
        raise BentpipeError(f"{path}: {wrong}", _DAMAGED)
    return Manifest(**values)


def _wrong(values: Any) -> str | None:
    """The first key of a manifest or its options that is missing, unknown or of a wrong type, in words."""
    for prefix, kind in (("", Manifest), ("options.", Plan)):
        table = values["options"] if prefix else values
        if not isinstance(table, dict):
            return "it is no JSON object"
        known = {one.name: one for one in fields(kind)}
        for key, one in known.items():
            if key not in table and one.default is MISSING and one.default_factory is MISSING:
                return f'the key "{prefix}{key}" is missing'
            if key in table and not _fits(table[key], str(one.type)):
                return f"{prefix}{key}: {table[key]!r} is not valid"
        for key in table:
            if key not in known:
                return f'unknown key "{prefix}{key}"'
    return None


def _wrong_scenario(values: dict[str, Any]) -> str | None:
    for label in Plan.from_mapping(values["options"]).labels():
        entry = values["scenarios"].get(label)
        parts = [entry.get(part) for part in ("scenario", "summary")] if isinstance(entry, dict) else [None]
        if not all(isinstance(part, dict) for part in parts):
            return f'scenarios: the scenario "{label}" is missing or not complete'
    return None


def _fits(value: object, kind: str) -> bool:
    """Whether a value from JSON is of the type `kind`, that of a field of Manifest or Plan."""
    match kind:
        case "str | None":
            return value is None or isinstance(value, str)
        case "str":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "tuple[str, ...]" | "list[str]":
            return isinstance(value, list) and all(isinstance(one, str) for one in value)
        case "Mapping[str, tuple[str, ...]]":
            return isinstance(value, dict) and all(_fits(one, "list[str]") for one in value.values())
        case _:
            return isinstance(value, dict)


def _same(installation: dict[str, Any]) -> dict[str, Any]:
    """What of an installation makes results differ."""
    return {key: installation.get(key) for key in ("inputs_sha256", "programs", "packages")}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def stack_versions(records: Iterable[Record]) -> dict[str, str]:
    """Stack → the version that it gave, from the records of trials."""
    found: dict[str, str] = {}
    for record in records:
        for label, version in (
            (record.client, record.client_version),
            (record.server, record.server_version),
        ):
            if version:
                found[label.partition(":")[0]] = version
    return dict(sorted(found.items()))


def _versions() -> dict[str, Any]:
    versions: dict[str, Any] = {"bentpipe": bentpipe.__version__, "python": platform.python_version()}
    for name, command in (("rustc", ["rustc", "--version"]), ("go", ["go", "version"])):
        if shutil.which(command[0]) is None:
            continue
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            versions[name] = done.stdout.strip().removeprefix(f"{name} ").removeprefix("version ")
    return versions | origin.made_from()


def _host() -> dict[str, Any]:
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
