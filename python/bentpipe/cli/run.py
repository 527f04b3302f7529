"""`bentpipe run`."""

from __future__ import annotations

import importlib
import shlex
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from bentpipe import progress
from bentpipe.cli import completing, run_options, step_ends, summary, watching
from bentpipe.cli.layout import folded
from bentpipe.errors import BentpipeError, Interrupted, UsageError
from bentpipe.execution import dask_cluster, preparation
from bentpipe.execution.awake import is_virtual_machine
from bentpipe.execution.pause import Pause
from bentpipe.execution.preparation import RunRequest
from bentpipe.execution.prepared_run import PreparedRun
from bentpipe.execution.run_execution import RunExecution
from bentpipe.execution.scheduler import to_repeat
from bentpipe.execution.settings import Settings
from bentpipe.plan.request import PlanRequest
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import without_courses
from bentpipe.stacks.time_limits import silence_s
from bentpipe.testbed import REMOTE

if TYPE_CHECKING:
    from bentpipe.report.pages import UsedBy


@click.command(short_help="Run a campaign: stacks against each other over satellite paths.")
@click.argument("name", required=False, metavar="[CAMPAIGN.toml]", shell_complete=completing.campaign)
@run_options.PLAN
@run_options.EXECUTION
@watching.OPTION
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
    watch: bool,
    **given: Any,
) -> int:
    """Run a campaign, in virtual time or in real time. Options override its file; docs/reference/campaigns.md
    has its keys.

    Without a campaign, options override those of `demo`, which has 3 iterations, a file of 10 MiB, and
    the seed 20260401. Then the capture of each cell's median trial is kept; the demo itself keeps only
    its analysis (--trace analysis).

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
      bentpipe run thesis --scenario sat --watch
      bentpipe run thesis --scenario sat --executor dask --workers 2
      bentpipe run my-campaign.toml --executor dask --scheduler tcp://127.0.0.1:8786
      bentpipe run --scenario sat --client noq --server noq --bundles bundles
    """
    begin = time.monotonic()
    retry = "failed" if retry_failed else "invalid" if retry_invalid else ""
    _refuse(resume, out, retry)
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
    request = PlanRequest(name, run_options.changed_keys(given), given["protocol"], given["size"] is not None)
    asked = RunRequest(request, extra, cluster, jobs)
    if bundles is not None:
        _refuse_bundles(request, resume or out)
        return _write_bundles(bundles, asked, settings)
    with watching.watched(watch) as show:
        started = preparation.resume(resume, asked, _note) if resume else preparation.start(out, asked, _note)
        show(started.folder.path)
        if not started.testbed.needs_processors_in_time:
            _import_meanwhile("bentpipe.runs.table", *(() if no_report else ("bentpipe.report",)))
        execution = _execute(started, settings, retry)
        console = Console(stderr=as_json, highlight=False)
        _show(execution, console, begin)
        if as_json:
            for record in execution.in_order:
                click.echo(record.to_json())
        if not no_report:
            console.print(f"report: {build_report(started.folder.path)}", soft_wrap=True)
    return 1 if execution.harness_failures else 0


def _refuse(resume: Path | None, out: Path | None, retry: str) -> None:
    """UsageError for options that exclude each other."""
    if retry and resume is None:
        raise UsageError(f"--retry-{retry}: there is no run to continue", "name its folder with --resume DIR")
    if resume is not None and out is not None:
        raise UsageError("--out and --resume cannot both be given", "a resumed run stays in its folder")


def _refuse_bundles(request: PlanRequest, folder: Path | None) -> None:
    """UsageError where --bundles is of no use: over real links, or with the `folder` of a run."""
    if request.changes.get("testbed") == REMOTE.name:
        raise UsageError("--bundles: trials over real links are run from here", "leave it out")
    if folder is not None:
        raise UsageError("--bundles: nothing is run", "leave out --out and --resume")


def _write_bundles(folder: Path, asked: RunRequest, settings: Settings) -> int:
    """Write the trials as bundles, and say what is left out."""
    checked = preparation.prepare(asked, _note)
    for line in _left_out(checked.manifest):
        click.echo(line, err=True)
    count = checked.write_bundles(folder, settings.silence_s)
    click.echo(f"{progress.count(count)} in {folder}: bentpipe worker BUNDLE runs one")
    return 0


def _execute(started: PreparedRun, settings: Settings, retry: str) -> RunExecution:
    """Execute the run to its end. Interrupted, with what continues it, on Ctrl-C."""
    started.folder.resume_options = settings.dask.options if settings.dask else ()
    shown = progress.choose()
    for line in _left_out(started.manifest):
        shown.note(line)
    again = to_repeat(started.folder.records, retry) if retry else frozenset()
    execution = RunExecution(started, settings, shown, again)
    try:
        execution.execute()
    except KeyboardInterrupt:
        raise Interrupted("interrupted", f"resume with: {started.folder.resume_command}") from None
    finally:
        started.folder.close()
    return execution


def _import_meanwhile(*modules: str) -> None:
    """Import what takes long and only the end of a run needs, while its trials run in other processes."""

    def import_them() -> None:
        for module in modules:
            importlib.import_module(module)

    threading.Thread(target=import_them, name="imports").start()


def _left_out(manifest: Manifest) -> Iterator[str]:
    """The parts of a plan that are not run, in lines."""
    yield from (f"left out: {why}" for why in manifest.left_out.values())
    yield from summary.not_applicable(manifest)


def _note(text: str) -> None:
    click.echo(f"note: {text}", err=True)


def build_report(folder: Path, used_by: Sequence[UsedBy] | None = None) -> Path:
    """Build the report of a finished run; its first page. If that is interrupted, it can be repeated at any
    time. It names the studies that are made from the run: by its campaign, or `used_by`.
    """
    from bentpipe.report import build

    again = f"bentpipe report {shlex.quote(str(folder))}"
    try:
        return build(folder, _studies_of(folder) if used_by is None else used_by)
    except KeyboardInterrupt:
        hint = f"records are complete; make the report with: {again}"
        raise Interrupted("interrupted while the report was made", hint) from None
    except OSError as error:
        what = f"{error.filename or folder / 'report'}: cannot be written: {error.strerror}"
        raise BentpipeError(what, f"records are complete; make the report with: {again}") from error


def _studies_of(folder: Path) -> list[UsedBy]:
    """The studies with a run of this campaign; none where studies or manifest cannot be read."""
    from bentpipe.report.pages import UsedBy
    from bentpipe.runs import manifest
    from bentpipe.study import catalogue

    try:
        campaign = manifest.read(folder).campaign
        known = catalogue.discover().values()
    except BentpipeError:  # what a report is of is not their matter
        return []
    return [
        UsedBy(one.title, f"bentpipe study {one.name}", None)
        for one in known
        if campaign in {planned.campaign.stem for planned in one.runs}
    ]


def _show(execution: RunExecution, console: Console, begin: float) -> None:
    records = [without_courses(record) for record in execution.in_order]
    summary.show(records, execution.run.manifest.scenarios, console)
    for line in step_ends.lines(records, execution.run.manifest.scenarios):
        console.print(folded(line, further="  "), markup=False, highlight=False, soft_wrap=True)
    counts = summary.counts(records)
    console.print(f"{progress.count(len(records))}, {counts}, in {time.monotonic() - begin:.1f} s")
    console.print(f"run: {execution.run.folder.path}", soft_wrap=True)
