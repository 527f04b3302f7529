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
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bentpipe
from bentpipe.campaign import Cast, Plan
from bentpipe.errors import BentpipeError
from bentpipe.records import Record
from bentpipe.scenarios import Scenario

FILE = "manifest.json"


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
    finished: str | None = None  # UTC; null: not finished
    resumed: list[str] = field(default_factory=list)  # when, UTC
    contract_breaches: dict[str, str] = field(
        default_factory=dict
    )  # "stack as role" → what it did instead of 127

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


def new(plan: Plan, scenarios: Iterable[Scenario], cast: Cast) -> Manifest:
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
            name: {"title": stack.title, "deterministic": stack.deterministic, "notes": stack.notes}
            for name, stack in sorted(cast.stacks.items())
        },
        left_out=cast.left_out,
    )


def read(folder: Path) -> Manifest:
    """The manifest of the run in `folder`; BentpipeError if there is none that can be understood."""
    path = folder / FILE
    try:
        manifest = Manifest(**json.loads(path.read_text()))
        manifest.plan  # noqa: B018 -- read now, so that an error is found here
    except FileNotFoundError:
        raise BentpipeError(f"{folder} is no run: it has no {FILE}", "give the folder of a run") from None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BentpipeError(
            f"{path}: cannot be read: {error}", "was it written by another version of Bentpipe?"
        ) from error
    return manifest


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
    return versions


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
