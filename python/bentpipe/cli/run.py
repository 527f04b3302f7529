"""`bentpipe run`."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace
from rich.console import Console

from bentpipe import progress, workload
from bentpipe.cli import run_options, summary
from bentpipe.cli.stacks import note_replaced
from bentpipe.errors import BentpipeError, Interrupted, UsageError
from bentpipe.execution import dask_cluster, link_plan
from bentpipe.execution.awake import is_virtual_machine
from bentpipe.execution.bundler import Bundler
from bentpipe.execution.dask_cluster import DaskSettings
from bentpipe.execution.pause import Pause
from bentpipe.execution.scheduler import Scheduler, Settings, to_repeat
from bentpipe.labels import VPN
from bentpipe.plan import campaign, flows, scenarios
from bentpipe.plan.applicability import not_applicable
from bentpipe.plan.campaign import PlanVariants
from bentpipe.plan.treatments import DIRECT, QUIC_PEP
from bentpipe.runs import manifest
from bentpipe.runs.records import without_courses
from bentpipe.runs.run_folder import RunFolder
from bentpipe.stacks import catalogue, middleboxes
from bentpipe.stacks.patience import silence_s
from bentpipe.testbed import EMU, REMOTE, RUNNER, TESTBEDS
from bentpipe.workload.http import UPGRADE

DEFAULT_CAMPAIGN = "demo"
# Who loads pages, by their ALPN, where nobody is named.
PAGE_STACKS = {"h3": "noq", "h2": "linux", "http/1.1": "linux"}  # none has an upgrade at both ends


@dataclass(frozen=True)
class RunRequest:
    """The request for a run, as the command line says it."""

    name: str | None  # of the campaign, or its file
    changes: dict[str, Any]  # keys of a plan
    extra: tuple[Path, ...]  # --stacks
    short: bool = False  # the workload was given as --bytes
    protocols: tuple[str, ...] = ()  # --protocol: versions of HTTP
    cluster: DaskSettings | None = None  # --executor dask
    jobs: int | None = None  # --jobs

    def where(self, key: str, option: str) -> str:
        """Where the value of `key` was given, for errors: the option, or the campaign file."""
        return option if key in self.changes else f"{self.name or DEFAULT_CAMPAIGN}: {key}"


@dataclass(frozen=True)
class PreparedRun:
    """A run that is prepared and can be executed."""

    folder: RunFolder
    manifest: manifest.Manifest
    variants: PlanVariants


@click.command(short_help="Run a campaign: stacks against each other over satellite paths.")
@click.argument("name", required=False, metavar="[CAMPAIGN.toml]")
@run_options.PLAN
@run_options.EXECUTION
def run(
    name: str | None,
    jobs: int | None,
    awake: bool | None,
    shuffle: bool,
    pause: str | None,
    out: Path | None,
    bundles: Path | None,
    resume: Path | None,
    retry_failed: bool,
    retry_invalid: bool,
    extra: tuple[Path, ...],
    no_report: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Run a campaign, in virtual time or in real time. Options change what its file says;
    docs/reference/campaigns.md has its keys.

    Without a campaign, options change `demo`: what they leave open is as there, with 3 iterations, a file of
    10 MiB, seed 20260401; the capture of each cell's median trial is kept, of which the demo itself keeps the
    analysis alone (--trace analysis).

    Ctrl-C leaves a run that can be continued with --resume.

    \b
    Examples:
      bentpipe run
      bentpipe run --scenario sat,satloss --client quinn --server quic-go --iterations 30
      bentpipe run --scenario sat --set forward.queue=1BDP --client quinn --server quinn:iw=100
      bentpipe run --scenario sat --workload transfer:1MB,upload:1MB --client quinn --server noq
      bentpipe run --scenario sat --workload duration:30s --client noq --server noq --flow start=1s
      bentpipe run --scenario geo-tum --client noq --server noq --treatment direct,quic-pep
      bentpipe run --scenario geo-tum --client noq --server noq --treatment direct,quic-pep \\
        --pep terminal:iw=100:cc=newreno,gateway:iw=100:cc=newreno --iterations 5
      bentpipe run --scenario geo-tum --workload page:kosek --protocol h1,h2,h3 --iterations 5
      bentpipe run --testbed emu --scenario sat --client quinn --server noq,quic-go --iterations 3
      bentpipe run --testbed emu --scenario sat --client linux,quinn --server linux,quinn \\
        --pairs self --treatment direct,vpn,vpn+tcp-pep --treatment vpn=server:kind=openvpn-udp
      bentpipe run --testbed remote --link examples/links.toml --client quinn --server noq,quinn
      bentpipe run my-campaign.toml --jobs 8 --out runs/mine
      bentpipe run --resume runs/mine
      bentpipe run thesis --scenario sat --executor dask --workers 2
      bentpipe run my-campaign.toml --executor dask --scheduler tcp://127.0.0.1:8786
      bentpipe run --scenario sat --client noq --server noq --bundles bundles
    """
    begin = time.monotonic()
    retry = "failed" if retry_failed else "invalid" if retry_invalid else ""
    if retry and resume is None:
        raise UsageError(f"--retry-{retry}: there is no run to continue", "name its folder with --resume DIR")
    if resume is not None and out is not None:
        raise UsageError("--out and --resume cannot both be given", "a resumed run stays in its folder")
    cluster = run_options.cluster(given)
    if cluster is not None:
        if awake:
            raise UsageError("--awake is of this machine, and a cluster runs the trials", "leave it out")
        dask_cluster.require(cluster)
    settings = Settings(
        jobs=jobs,
        dask=cluster,
        shuffle=shuffle,
        pause=Pause.parse(pause) if pause is not None else None,
        silence_s=silence_s(),
        awake=is_virtual_machine() if awake is None else awake,
    )
    asked = RunRequest(
        name,
        run_options.changed_keys(given),
        extra,
        short=given["size"] is not None,
        protocols=given["protocol"],
        cluster=cluster,
        jobs=jobs,
    )
    if bundles is not None:
        if asked.changes.get("testbed") == REMOTE.name:
            raise UsageError("--bundles: trials over real links are run from here", "leave it out")
        if resume is not None or out is not None:
            raise UsageError("--bundles: nothing is run", "leave out --out and --resume")
        return _write_bundles(bundles, asked, settings)
    started = _resume(resume, asked, settings.jobs) if resume else _start(out, asked, settings.jobs)
    started.folder.resume_options = cluster.options if cluster else ()
    console = Console(stderr=as_json, highlight=False)
    shown = progress.choose()
    for why in started.manifest.left_out.values():
        shown.note(f"left out: {why}")
    for line in summary.not_applicable(started.manifest):
        shown.note(line)
    again = to_repeat(started.folder.records, retry) if retry else frozenset()
    execution = Scheduler(started.folder, started.manifest, started.variants, settings, shown, again)
    try:
        execution.run()
        execution.finish()
    except KeyboardInterrupt:
        raise Interrupted("interrupted", f"resume with: {started.folder.resume_command}") from None
    finally:
        started.folder.close()
    _show(execution, console, begin)
    if as_json:
        for record in execution.in_order:
            click.echo(record.to_json())
    if not no_report:
        console.print(f"report: {build_report(started.folder.path)}", soft_wrap=True)
    return 1 if execution.harness_failures else 0


def _start(out: Path | None, asked: RunRequest, jobs: int | None) -> PreparedRun:
    values, variants = _prepare(asked)
    _check_room(values.plan, asked.where("workloads", "--bytes" if asked.short else "--workload"), jobs)
    folder = RunFolder.create(out or unused_folder(values.plan.name))
    try:
        folder.write_manifest(values)
    except BaseException:
        folder.close()
        raise
    return PreparedRun(folder, values, variants)


def unused_folder(name: str) -> Path:
    """A folder for a run that nobody named: of two that begin in the same second, the later counts on."""
    first = Path("runs") / f"{name}-{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}"
    further = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([first], further) if not path.exists())


def _write_bundles(folder: Path, asked: RunRequest, settings: Settings) -> int:
    """Write the trials as bundles, and say what is left out."""
    values, variants = _prepare(asked)
    bundler = Bundler(values, variants, settings.silence_s)
    bundler.ask_versions()
    for why in values.left_out.values():
        click.echo(f"left out: {why}", err=True)
    for line in summary.not_applicable(values):
        click.echo(line, err=True)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"--bundles: {folder} exists already and is not empty", "choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for trial in values.trials():
        text = json.dumps(msgspec.to_builtins(bundler.bundle(trial)))
        (folder / f"{trial.id}.json").write_text(f"{text}\n")
    click.echo(f"{progress.count(len(values.trials()))} in {folder}: bentpipe worker BUNDLE runs one")
    return 0


def _prepare(asked: RunRequest) -> tuple[manifest.Manifest, PlanVariants]:
    """What is to be run, checked, and by whom; nothing is written yet."""
    changes = asked.changes
    plan = _planned(asked, campaign.load(DEFAULT_CAMPAIGN if asked.name is None else asked.name))
    if asked.name is None and not changes.keys().isdisjoint(run_options.LISTS.values()):
        plan = replace(plan, name="run", title="")  # it is the demo no longer
    if asked.name is None and changes.keys().isdisjoint({"clients", "servers", "pairs"}):
        plan = _with_http(plan)
    if asked.name is None and changes and "trace" not in changes:
        # Who changes something wants to look closely; and in real time no capture can be had again.
        plan = replace(plan, trace="median")
    plan = link_plan.over_links(plan, not changes.keys().isdisjoint({"scenarios"}) or asked.name is not None)
    if plan.qlog and plan.trace == "none":
        where = asked.where("qlog", "--qlog")
        raise UsageError(
            f"{where}: there is no trace for qlogs to go with", "add --trace median, analysis or all"
        )
    known = catalogue.discover(asked.extra)
    note_replaced(known)
    _check_execution(plan, asked)
    variants = campaign.find_variants(plan, known, _named(changes))
    plan.labels()
    resolved = _resolve(plan, asked)
    _check_times(plan, resolved, asked)
    return manifest.new(plan, resolved, variants, _stack_folders(asked.extra)), variants


def _planned(asked: RunRequest, plan: campaign.Plan) -> campaign.Plan:
    """A plan, changed as the command line says."""
    changed = plan.changed(asked.changes)
    return changed.over(asked.protocols, "--protocol") if asked.protocols else changed


def _with_http(plan: campaign.Plan) -> campaign.Plan:
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


def _check_execution(plan: campaign.Plan, asked: RunRequest) -> None:
    """Proxies and tunnels are of use, and can be started; and the executor can run the plan."""
    if asked.cluster is not None and TESTBEDS[plan.testbed].is_elsewhere:
        raise UsageError(
            f"--executor dask: hosts of {TESTBEDS[plan.testbed].title} are reached from here", "leave it out"
        )
    if asked.cluster is not None and asked.cluster.traces_stay is not None and plan.trace != "all":
        raise UsageError(
            f"--traces-stay {asked.cluster.traces_stay}: this run has trace = {plan.trace}, and which traces "
            "it keeps is decided here",
            "leave it out, or run with --trace all",
        )
    if asked.jobs not in (None, 1) and TESTBEDS[plan.testbed].is_elsewhere:
        raise UsageError(f"--jobs {asked.jobs}: over a real link one trial runs at a time", "leave it out")
    if "pep" in asked.changes and QUIC_PEP not in plan.treatments:
        raise UsageError(f"--pep: no treatment is {QUIC_PEP}", f"add --treatment {DIRECT},{QUIC_PEP}")
    for treatment in plan.parsed_treatments:
        if treatment.tunnel and plan.testbed != EMU.name:
            where = asked.where("treatments", "--treatment")
            raise UsageError(f"{where}: {VPN} is there in {EMU.title} alone", f"add --testbed {EMU.name}")
        if treatment.tunnel:
            middleboxes.tunnels()[treatment.tunnel.kind].command(EMU.mode)
            middleboxes.check_device()
        if treatment.proxies:
            middleboxes.chains()[treatment.kind].command(TESTBEDS[plan.testbed].mode)


def _resolve(plan: campaign.Plan, asked: RunRequest) -> list[scenarios.Scenario]:
    """The plan's scenarios in full. What the campaign file sets is in errors what it is there, no option."""
    if plan.link:
        return link_plan.scenarios_of(plan)
    try:
        return scenarios.resolve_all(plan.cases())
    except scenarios.ScenarioError as error:
        text, file = str(error), asked.name or DEFAULT_CAMPAIGN
        typed = asked.changes.get("set", ())
        for key, swept in plan.sweep.items():
            for value in swept:
                for one in campaign.split(key):
                    text = text.replace(
                        f"--set {one}={value}", f'sweep."{key}" = "{value}" of the campaign {file}'
                    )
        for setting in plan.set:
            if setting not in typed:
                text = text.replace(f"--set {setting}", f'set "{setting}" of the campaign {file}')
        raise UsageError(text, error.hint) from error


def _check_times(plan: campaign.Plan, resolved: Sequence[scenarios.Scenario], asked: RunRequest) -> None:
    """Every flow begins, and lasts as long as it is to, before a trial's timeout."""
    for scenario, moved in itertools.product(resolved, plan.parsed_workloads):
        timeout_s = scenario.summary["timeout_s"]
        for flow in (flows.FurtherFlow(), *flows.of(moved)):
            lasts_ms = (flow.workload or moved).least_ms
            if flow.start_ms + (lasts_ms or 1) <= timeout_s * 1000:
                continue
            further = flow != flows.FurtherFlow()
            where = asked.where("flows", "--flow") if further else asked.where("workloads", "--workload")
            ends = "begins" if lasts_ms is None else "ends"
            raise UsageError(
                f'{where}: "{flow if further else moved.alone}" {ends} after {scenario.label}\'s timeout of '
                f"{timeout_s:g} s",
                'choose an earlier time, or set a later timeout, as in --set "timeout=300 s"',
            )


def _check_room(plan: campaign.Plan, where: str, jobs: int | None) -> None:
    at_a_time = min(TESTBEDS[plan.testbed].jobs(jobs), len(plan.trials()))
    workloads = plan.parsed_workloads
    workloads += [flow.workload for flow in flows.every(workloads) if flow.workload]
    workload.check_room(Path(tempfile.gettempdir()), workloads, where, at_a_time)


def _stack_folders(extra: Sequence[Path]) -> list[str]:
    """The folders of stacks that the user named, for when the run is resumed."""
    named = [entry for entry in os.environ.get("BENTPIPE_STACKS", "").split(":") if entry]
    return [str(folder.resolve()) for folder in (*map(Path, named), *extra)]


def _resume(path: Path, asked: RunRequest, jobs: int | None) -> PreparedRun:
    folder, values = RunFolder.reopen(path)
    try:
        plan = values.plan
        if plan.testbed == RUNNER:
            raise UsageError(
                f"--resume {path}: the QUIC interop runner made this run, and it was imported",
                "show it: bentpipe report, bentpipe compare",
            )
        new = plan if asked.name is None else campaign.load(asked.name)
        differs = campaign.difference(plan, _planned(asked, new))
        if differs:
            raise UsageError(
                f"--resume {path}: another campaign: {differs}",
                f"continue it as it is with: {folder.resume_command}",
            )
        _check_execution(plan, asked)
        _check_room(plan, f"{path / manifest.FILE}: workloads", jobs)
        if asked.extra:  # the folders may have moved
            values.stack_folders = _stack_folders(asked.extra)
        known = catalogue.discover(Path(one) for one in values.stack_folders)
        variants = campaign.find_variants(plan, known, {*plan.clients, *plan.servers}, values.left_out)
        for stack in values.resumed_with(variants.stacks):
            click.echo(
                f"note: {stack} is not what it was when the run began: see {path / manifest.FILE}", err=True
            )
        values.not_applicable = not_applicable(plan, variants)
        values.resumed.append(manifest.now())
        values.finished = None
        folder.write_manifest(values)
    except BaseException:
        folder.close()
        raise
    return PreparedRun(folder, values, variants)


def _named(changes: dict[str, Any]) -> Sequence[str]:
    return (*changes.get("clients", ()), *changes.get("servers", ()))


def build_report(folder: Path) -> Path:
    """Make the report of a finished run; its first page. Ended early, it can be made again at any time."""
    from bentpipe.report import build

    again = f"bentpipe report {shlex.quote(str(folder))}"
    try:
        return build(folder)
    except KeyboardInterrupt:
        hint = f"records are complete; make the report with: {again}"
        raise Interrupted("interrupted while the report was made", hint) from None
    except OSError as error:
        what = f"{error.filename or folder / 'report'}: cannot be written: {error.strerror}"
        raise BentpipeError(what, f"records are complete; make the report with: {again}") from error


def _show(execution: Scheduler, console: Console, begin: float) -> None:
    records = [without_courses(record) for record in execution.in_order]
    summary.show(records, execution.manifest.scenarios, console)
    counts = summary.counts(records)
    console.print(f"{progress.count(len(records))}, {counts}, in {time.monotonic() - begin:.1f} s")
    console.print(f"run: {execution.folder.path}", soft_wrap=True)
