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
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import bentpipe
from bentpipe import labels, origin
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.plan.applicability import Combination, not_applicable
from bentpipe.plan.campaign import Plan, PlanVariants
from bentpipe.plan.scenarios import Scenario
from bentpipe.plan.trial import IP_VERSIONS, Trial
from bentpipe.runs.records import Record
from bentpipe.schema import manifest as schema
from bentpipe.schema import reading
from bentpipe.schema.manifest import FORMAT, ScenarioState, StackState
from bentpipe.stacks import state
from bentpipe.stacks.model import Stack
from bentpipe.testbed import RUNNER, TESTBEDS

FILE = "manifest.json"
_DAMAGED = "restore the file, or repeat the run; it may also be of another version of Bentpipe"


class Manifest(schema.Manifest, kw_only=True, forbid_unknown_fields=True):
    """The state of a run beside its records (`schemas/manifest.toml`)."""

    options: Plan

    def resumed_with(self, stacks: Mapping[str, Stack]) -> list[str]:
        """Record the current installation of the `stacks` that have changed; their names. A manifest of an
        older version does not know the earlier one.
        """
        changed = []
        for name, stack in stacks.items():
            entry, now = self.stacks.get(name), state.installation(stack)
            known = [entry.installation, *entry.resumed_with][-1] if entry else None
            if entry and known is not None and now is not None and _same(known) != _same(now):
                entry.resumed_with.append(now)
                changed.append(name)
        return changed

    @property
    def plan(self) -> Plan:
        return self.options

    def trials(self, recorded: Collection[str] = ()) -> list[Trial]:
        """The trials of the run: those of its plan that are applicable, by stacks that take part, and those
        that are `recorded`, since older versions recorded others, too.
        """
        cannot = {Combination.of(cell) for one in self.not_applicable for cell in one.cells}
        planned = self.plan.trials(tuple(self.left_out))
        return [one for one in planned if one.id in recorded or Combination.of(one) not in cannot]

    def write(self, folder: Path) -> None:
        """Write it to `folder`, replacing an older one only when it is complete. OSError if that fails."""
        partial = folder / f"{FILE}.partial"
        with partial.open("w") as file:
            json.dump(msgspec.to_builtins(self), file, indent=1)
            file.write("\n")
        partial.replace(folder / FILE)


def new(
    plan: Plan, scenarios: Iterable[Scenario], variants: PlanVariants, stack_folders: Sequence[str] = ()
) -> Manifest:
    """The manifest of a run that starts now. UsageError if nothing of the plan is applicable."""
    return Manifest(
        campaign=plan.name,
        title=plan.title,
        options=plan.in_full,
        command=shlex.join(["bentpipe", *sys.argv[1:]]),
        started=now(),
        versions=_versions(),
        host=_host(),
        scenarios={
            one.label: ScenarioState(scenario=dict(one.scenario), summary=dict(one.summary))
            for one in scenarios
        },
        stacks={
            name: StackState(
                title=stack.title,
                deterministic=stack.deterministic,
                notes=stack.notes,
                installation=state.installation(stack),
            )
            for name, stack in sorted(variants.stacks.items())
        },
        left_out=variants.left_out,
        not_applicable=not_applicable(plan, variants),
        stack_folders=list(stack_folders),
        cwd=str(Path.cwd()),
    )


def read(folder: Path) -> Manifest:
    """The manifest of the run in `folder`; UsageError if there is no such folder, BentpipeError if it has no
    valid manifest.
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
    try:
        found = reading.convert(values, Manifest, FORMAT)
        _check_scenarios(found)
    except ValueError as error:
        newer = isinstance(error, reading.FormatError)
        hint = "use the version of Bentpipe that wrote it" if newer else _DAMAGED
        raise BentpipeError(f"{path}: {error}", hint) from error
    return found


def _check_scenarios(manifest: Manifest) -> None:
    """ValueError if the plan is none that can be carried out here, or a scenario of it is not there."""
    options = manifest.options
    if options.testbed not in (*TESTBEDS, RUNNER):
        raise ValueError(f'options: testbed: "{options.testbed}" is not valid')
    if options.ip not in IP_VERSIONS:
        raise ValueError(f"options: ip: {options.ip} is not valid")
    for label in manifest.options.labels():
        if label not in manifest.scenarios:
            raise ValueError(f'scenarios: the scenario "{label}" is missing')


def _same(installation: dict[str, Any]) -> dict[str, Any]:
    """The parts of an installation that can make results differ."""
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
                found[labels.variant(label).stack] = version
    return dict(sorted(found.items()))


def _versions() -> dict[str, Any]:
    # All are asked at once, so that it takes as long as the slowest of them.
    with ThreadPoolExecutor() as pool:
        made_from = pool.submit(origin.made_from)
        compilers = {name: pool.submit(_compiler, name) for name in _COMPILERS}
    versions = {name: asked.result() for name, asked in compilers.items()}
    return {
        "bentpipe": bentpipe.__version__,
        "python": platform.python_version(),
        **{name: version for name, version in versions.items() if version is not None},
        **made_from.result(),
    }


_COMPILERS = {"rustc": "--version", "go": "version"}


@cache
def _compiler(name: str) -> str | None:
    """The version that a compiler gives, which is asked once; None if it is not there, or fails."""
    if shutil.which(name) is None:
        return None
    done = subprocess.run([name, _COMPILERS[name]], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    return done.stdout.strip().removeprefix(f"{name} ").removeprefix("version ")


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
