"""Preparation of a run: everything that can be refused is refused before its first trial."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bentpipe import workload
from bentpipe.errors import UsageError
from bentpipe.execution import link_plan
from bentpipe.execution.bundler import Bundler
from bentpipe.execution.dask_cluster import DaskSettings
from bentpipe.execution.prepared_run import PreparedRun
from bentpipe.labels import VPN
from bentpipe.plan import campaign, flows
from bentpipe.plan.applicability import not_applicable
from bentpipe.plan.campaign import Plan, PlanVariants
from bentpipe.plan.request import PlanRequest, check_paths
from bentpipe.plan.treatments import DIRECT, QUIC_PEP
from bentpipe.runs import manifest
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.run_folder import RunFolder, unused_folder
from bentpipe.stacks import catalogue, middleboxes
from bentpipe.testbed import EMU, RUNNER, TESTBEDS


@dataclass(frozen=True)
class RunRequest:
    """The request for a run: its plan, and who is to execute it."""

    plan: PlanRequest
    stack_folders: tuple[Path, ...] = ()  # --stacks
    cluster: DaskSettings | None = None  # --executor dask
    jobs: int | None = None  # --jobs


@dataclass(frozen=True)
class CheckedRun:
    """A run that was found to be possible; nothing of it is written yet."""

    manifest: Manifest
    variants: PlanVariants

    def write_bundles(self, folder: Path, silence_s: int) -> int:
        """Write each trial as a bundle to `folder`; how many they are."""
        bundler = Bundler(self.manifest, self.variants, silence_s)
        bundler.ask_versions()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"--bundles: {folder} exists already and is not empty", "choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        trials = self.manifest.trials()
        for trial in trials:
            text = json.dumps(msgspec.to_builtins(bundler.bundle(trial)))
            (folder / f"{trial.id}.json").write_text(f"{text}\n")
        return len(trials)


def prepare(asked: RunRequest, note: Callable[[str], None]) -> CheckedRun:
    """Plan a new run and check it. A `note` says what a user may not expect."""
    request = asked.plan
    plan = link_plan.over_links(request.plan(), request.names_scenarios)
    if plan.qlog and plan.trace == "none":
        where = request.where("qlog", "--qlog")
        raise UsageError(
            f"{where}: there is no trace for qlogs to go with", "add --trace median, analysis or all"
        )
    known = catalogue.discover(asked.stack_folders)
    for replacement in catalogue.replacements(known):
        note(replacement)
    _check_execution(plan, asked)
    variants = campaign.find_variants(plan, known, request.variants)
    plan.labels()
    resolved = link_plan.scenarios_of(plan) if plan.link else request.resolve(plan)
    if not plan.link:
        plan, timeout_s = request.with_time(plan, resolved)
        if timeout_s is not None:
            note(f"the timeout is {timeout_s} s: so long do the transfers of a given duration take")
            resolved = request.resolve(plan)
    request.check_times(plan, resolved)
    check_paths(plan, resolved)
    return CheckedRun(manifest.new(plan, resolved, variants, _stack_folders(asked.stack_folders)), variants)


def start(out: Path | None, asked: RunRequest, note: Callable[[str], None]) -> PreparedRun:
    """Prepare a new run, in the folder `out` or one of its campaign's name."""
    checked = prepare(asked, note)
    _check_space(checked.manifest.plan, asked.plan.where_workloads, asked.jobs)
    folder = RunFolder.create(out or unused_folder(checked.manifest.plan.name))
    try:
        folder.write_manifest(checked.manifest)
    except BaseException:
        folder.close()
        raise
    return PreparedRun(folder, checked.manifest, checked.variants)


def resume(path: Path, asked: RunRequest, note: Callable[[str], None]) -> PreparedRun:
    """Prepare the run in the folder `path` to be continued, by the plan that it began with."""
    folder, values = RunFolder.reopen(path)
    try:
        _check_same_plan(folder, values.plan, asked.plan)
        _check_execution(values.plan, asked)
        _check_space(values.plan, f"{path / manifest.FILE}: workloads", asked.jobs)
        variants = _resume_manifest(values, asked.stack_folders, path, note)
        folder.write_manifest(values)
    except BaseException:
        folder.close()
        raise
    return PreparedRun(folder, values, variants)


def _check_same_plan(folder: RunFolder, plan: Plan, request: PlanRequest) -> None:
    """UsageError if the run in `folder` cannot be continued, or not by what is asked for."""
    if plan.testbed == RUNNER:
        raise UsageError(
            f"--resume {folder.path}: the QUIC interop runner made this run, and it was imported",
            "show it: bentpipe report, bentpipe compare",
        )
    new = plan
    if request.name is not None:
        new = campaign.load(request.name)
        if new.draws == campaign.DEFAULT_DRAWS:  # a run from before there was a choice keeps its own
            new = msgspec.structs.replace(new, draws=plan.draws)
    differs = campaign.difference(plan, request.changed(new))
    if differs:
        raise UsageError(
            f"--resume {folder.path}: another campaign: {differs}",
            f"continue it as it is with: {folder.resume_command}",
        )


def _resume_manifest(
    values: Manifest, stack_folders: Sequence[Path], path: Path, note: Callable[[str], None]
) -> PlanVariants:
    """Keep in the manifest of a run that it is resumed, and with what; its variants as they are now."""
    if stack_folders:  # they may have moved
        values.stack_folders = _stack_folders(stack_folders)
    plan = values.plan
    known = catalogue.discover(Path(one) for one in values.stack_folders)
    variants = campaign.find_variants(plan, known, {*plan.clients, *plan.servers}, values.left_out)
    for stack in values.resumed_with(variants.stacks):
        note(f"{stack} is not what it was when the run began: see {path / manifest.FILE}")
    values.not_applicable = not_applicable(plan, variants)
    values.resumed.append(manifest.now())
    values.finished = None
    return variants


def _check_execution(plan: Plan, asked: RunRequest) -> None:
    """UsageError if the executor cannot run the plan, or proxies and tunnels cannot be started."""
    _check_executor(plan, asked)
    if "pep" in asked.plan.changes and QUIC_PEP not in plan.treatments:
        raise UsageError(f"--pep: no treatment is {QUIC_PEP}", f"add --treatment {DIRECT},{QUIC_PEP}")
    for treatment in plan.parsed_treatments:
        if treatment.tunnel and plan.testbed != EMU.name:
            where = asked.plan.where("treatments", "--treatment")
            raise UsageError(f"{where}: {VPN} is available in {EMU.title} only", f"add --testbed {EMU.name}")
        if treatment.tunnel:
            middleboxes.tunnels()[treatment.tunnel.kind].command(EMU.mode)
            middleboxes.check_device()
        if treatment.proxies:
            middlebox = middleboxes.chains()[treatment.kind]
            middlebox.command(TESTBEDS[plan.testbed].mode)
            if middlebox.has_devices and plan.testbed == EMU.name:
                middleboxes.check_device()


def _check_executor(plan: Plan, asked: RunRequest) -> None:
    testbed = TESTBEDS[plan.testbed]
    if asked.cluster is not None and testbed.is_elsewhere:
        raise UsageError(f"--executor dask: hosts of {testbed.title} are reached from here", "leave it out")
    if asked.cluster is not None and asked.cluster.traces_stay is not None and plan.trace != "all":
        raise UsageError(
            f"--traces-stay {asked.cluster.traces_stay}: this run has trace = {plan.trace}, and which traces "
            "it keeps is decided here",
            "leave it out, or run with --trace all",
        )
    if asked.jobs not in (None, 1) and testbed.is_elsewhere:
        raise UsageError(f"--jobs {asked.jobs}: over a real link one trial runs at a time", "leave it out")


def _check_space(plan: Plan, where: str, jobs: int | None) -> None:
    """UsageError, naming `where`, if the files of the trials that run at a time do not fit on the disk."""
    at_a_time = min(TESTBEDS[plan.testbed].jobs(jobs), len(plan.trials()))
    workloads = plan.parsed_workloads
    workloads += [flow.workload for flow in flows.every(workloads) if flow.workload]
    workload.check_space(Path(tempfile.gettempdir()), workloads, where, at_a_time)


def _stack_folders(extra: Sequence[Path]) -> list[str]:
    """The folders of stacks that the user named, for when the run is resumed."""
    named = [entry for entry in os.environ.get("BENTPIPE_STACKS", "").split(":") if entry]
    return [str(folder.resolve()) for folder in (*map(Path, named), *extra)]
