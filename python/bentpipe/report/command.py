"""The command that repeats a cell."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from bentpipe import workload
from bentpipe.analysis.cells import Cell
from bentpipe.plan import campaign
from bentpipe.plan.trial import IP_VERSIONS
from bentpipe.runs.manifest import Manifest
from bentpipe.schema.manifest import Options
from bentpipe.testbed import SIM


def reproduce(cell: Cell, manifest: Manifest) -> str:
    """The shell command that runs this cell again, with every trace.

    A trial's seed comes from the campaign's seed and the trial's own coordinates or its iteration alone, so
    the cell alone gives the same trials as the whole campaign did. Read from the manifest: of its `options`
    `seed`, `draws`, `iterations`, `ip` and `scenarios`; `stack_folders`, which hold stacks of the user's; and
    `cwd`, from which relative paths were meant. Settings stand in the scenario's label.
    """
    plan = manifest.plan
    key = cell.key
    scenario = key.scenario_label
    words = [
        "bentpipe",
        "run",
        "--scenario",
        _as_named(scenario.name, plan, manifest.cwd),
        "--client",
        key.client,
        "--server",
        key.server,
    ]
    words += ["--iterations", str(plan.iterations)]
    moved = workload.parse(key.workload, "workload")
    words += ["--workload", str(moved.alone)]
    for flow in moved.flows:
        words += ["--flow", flow]
    between = key.treatment_label
    if between.chain:
        words += ["--treatment", between.as_option]
    words += ["--seed", str(plan.seed)]
    if plan.draws != campaign.DEFAULT_DRAWS:
        words += ["--draws", plan.draws]
    if key.testbed != SIM.name:
        words += ["--testbed", key.testbed]
    if plan.link:
        words += ["--link", plan.link]
    if plan.ip != IP_VERSIONS[0]:
        words += ["--ip", str(plan.ip)]
    for setting in scenario.settings:
        words += ["--set", setting]
    for folder in manifest.stack_folders:
        words += ["--stacks", _from_cwd(folder, manifest.cwd)]
    through = f"-{between.kind}" if between.chain else ""
    out = f"{scenario.name}-{key.client}-{key.server}{through}".replace("/", "_")
    words += ["--trace", "all", "--out", out]
    return shlex.join(words)


def _as_named(scenario: str, plan: Options, cwd: str) -> str:
    """The scenario as the run's command named it: a user's file is known by its path, not by its name."""
    files = [name for name in plan.scenarios if name.endswith(".toml")]
    file = next((file for file in files if Path(file).stem == scenario), None)
    return scenario if file is None else _from_cwd(file, cwd)


def _from_cwd(path: str, cwd: str) -> str:
    """A path of the user's, absolute if the folder from which it was meant is known."""
    return os.path.normpath(Path(cwd) / path) if cwd else path
