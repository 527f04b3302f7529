"""`bentpipe run`."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bentpipe import campaign, manifest, progress, scenarios, stacks, summary
from bentpipe.campaign import Cast
from bentpipe.errors import UsageError
from bentpipe.pause import Pause
from bentpipe.records import Record
from bentpipe.run import Execution, Settings, failed
from bentpipe.run_folder import RunFolder

DEFAULT_CAMPAIGN = "demo"
_LISTS = {"scenario": "scenarios", "client": "clients", "server": "servers"}


def split(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Comma-separated and repeated values as one list, each once."""
    parts = (part.strip() for value in values for part in value.split(","))
    return campaign.unique([part for part in parts if part])


@dataclass(frozen=True)
class Started:
    """A run that is ready to be executed."""

    folder: RunFolder
    manifest: manifest.Manifest
    cast: Cast
    records: dict[str, Record]


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


_PLAN_OPTIONS = _options(
    click.option(
        "--scenario", multiple=True, callback=split, metavar="NAME,…", help="Names, or paths to .toml files."
    ),
    click.option(
        "--client", multiple=True, callback=split, metavar="STACK,…", help="Stacks, as in quinn:cc=bbr:iw=32."
    ),
    click.option("--server", multiple=True, callback=split, metavar="STACK,…", help="Likewise."),
    click.option("--iterations", type=click.IntRange(1), metavar="N", help="Trials of each cell."),
    click.option(
        "--bytes", "size", metavar="SIZE", help="Size of the file, as in 10MiB, 200MB or a number of bytes."
    ),
    click.option(
        "--set", "set_", multiple=True, metavar="KEY=VALUE", help="Change a scenario: forward.queue=1BDP."
    ),
    click.option("--seed", type=click.IntRange(0), metavar="N", help="All randomness comes from it."),
    click.option("--trace", type=click.Choice(campaign.TRACES), help="Which trials leave a trace."),
    click.option(
        "--qlog", is_flag=True, default=None, help="With traces, also the endpoints' qlogs (slower)."
    ),
)
_EXECUTION_OPTIONS = _options(
    click.option(
        "--jobs", type=click.IntRange(1), metavar="N", help="Trials at a time (default: cores + 1)."
    ),
    click.option("--shuffle", is_flag=True, help="Run trials in random order. Results stay the same."),
    click.option(
        "--pause-between", "pause", metavar="HH:MM-HH:MM", help="Start no trial in this local time."
    ),
    click.option("--out", type=click.Path(path_type=Path), help="Folder (default: runs/CAMPAIGN-TIME)."),
    click.option("--resume", type=click.Path(path_type=Path), metavar="DIR", help="Continue the run in DIR."),
    click.option("--retry-failed", is_flag=True, help="With --resume: run failed trials again."),
    click.option(
        "--stacks",
        "extra",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Further folders of stacks.",
    ),
    click.option("--no-report", is_flag=True, help="Make no report at the end."),
    click.option("--json", "as_json", is_flag=True, help="Print the records, one JSON object per line."),
)


@click.command(short_help="Run a campaign: stacks against each other over satellite paths.")
@click.argument("name", required=False, metavar="[CAMPAIGN.toml]")
@_PLAN_OPTIONS
@_EXECUTION_OPTIONS
def run(
    name: str | None,
    jobs: int | None,
    shuffle: bool,
    pause: str | None,
    out: Path | None,
    resume: Path | None,
    retry_failed: bool,
    extra: tuple[Path, ...],
    no_report: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Run a campaign in virtual time; without a file, `demo`. Options change what the file says.

    Ctrl-C leaves a run that can be continued with --resume.

    \b
    Examples:
      bentpipe run
      bentpipe run --scenario sat,satloss --client quinn --server quic-go --iterations 30
      bentpipe run --scenario sat --set forward.queue=1BDP --client quinn:iw=10,quinn:iw=100 --server quinn
      bentpipe run my-campaign.toml --jobs 8 --out runs/mine
      bentpipe run --resume runs/mine
    """
    begin = time.monotonic()
    if retry_failed and resume is None:
        raise UsageError("--retry-failed: there is no run to continue", "name its folder with --resume DIR")
    if resume is not None and out is not None:
        raise UsageError("--out and --resume cannot both be given", "a resumed run stays in its folder")
    settings = Settings(
        jobs=jobs or (os.cpu_count() or 1) + 1,  # a trial's two programs wait for each other at times
        shuffle=shuffle,
        pause=Pause.parse(pause) if pause else None,
        silence_s=_silence_s(),
    )
    changes, known = _changes(given), stacks.discover(extra)
    started = _resume(resume, name, changes, known) if resume else _start(out, name, changes, known)
    console = Console(stderr=as_json, highlight=False)
    shown = progress.choose()
    for why in started.manifest.left_out.values():
        shown.note(f"left out: {why}")
    retry = failed(started.records) if retry_failed else frozenset()
    execution = Execution(
        started.folder, started.manifest, started.cast, settings, shown, started.records, retry
    )
    try:
        execution.run()
        execution.finish()
    finally:
        started.folder.close()
    _show(execution, console, begin)
    if as_json:
        for record in execution.in_order:
            click.echo(record.to_json())
    if not no_report:
        console.print(f"report: {_report(started.folder.path)}", soft_wrap=True)
    return 1 if execution.harness_failures else 0


def _changes(given: dict[str, Any]) -> dict[str, Any]:
    """The keys of a plan that the command line gives."""
    changes: dict[str, Any] = {_LISTS[key]: given[key] for key in _LISTS if given[key]}
    changes |= {key: given[key] for key in ("iterations", "seed", "trace", "qlog") if given[key] is not None}
    if given["size"] is not None:
        changes["bytes"] = campaign.size(given["size"], "--bytes")
    if given["set_"]:
        changes["set"] = given["set_"]
    return changes


def _start(
    out: Path | None, name: str | None, changes: dict[str, Any], known: dict[str, stacks.Stack]
) -> Started:
    plan = campaign.load(name or DEFAULT_CAMPAIGN).changed(changes)
    if name is None and not changes.keys().isdisjoint(_LISTS.values()):
        plan = dataclasses.replace(plan, name="run", title="")  # it is the demo no longer
    cast = campaign.cast(plan, known, _named(changes))
    plan.labels()
    resolved = scenarios.resolve_all(plan.cases())
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = RunFolder.create(out or Path("runs") / f"{plan.name}-{now}")
    values = manifest.new(plan, resolved, cast)
    folder.write_manifest(values)
    return Started(folder, values, cast, {})


def _resume(path: Path, name: str | None, changes: dict[str, Any], known: dict[str, stacks.Stack]) -> Started:
    folder, values, records = RunFolder.reopen(path)
    try:
        asked = (campaign.load(name) if name else values.plan).changed(changes)
        differs = campaign.difference(values.plan, asked)
        if differs:
            raise UsageError(
                f"--resume {path}: another campaign: {differs}",
                f"continue it as it is with: bentpipe run --resume {path}",
            )
        plan = values.plan
        cast = campaign.cast(plan, known, {*plan.clients, *plan.servers}, values.left_out)
        values.resumed.append(manifest.now())
        values.finished = None
        folder.write_manifest(values)
    except BaseException:
        folder.close()
        raise
    return Started(folder, values, cast, {record.trial: record for record in records})


def _named(changes: dict[str, Any]) -> Sequence[str]:
    return (*changes.get("clients", ()), *changes.get("servers", ()))


def _report(folder: Path) -> Path:
    from bentpipe.report import build

    return build(folder)


def _show(execution: Execution, console: Console, begin: float) -> None:
    records = execution.in_order
    summary.show(records, execution.manifest.scenarios, console)
    good = sum(record.ok for record in records)
    console.print(f"{len(records)} trials, {good} ok, in {time.monotonic() - begin:.1f} s")
    console.print(f"run: {execution.folder.path}", soft_wrap=True)


def _silence_s() -> int:
    """How long an endpoint may be silent, in wall time; tests of endpoints that hang make it short."""
    text = os.environ.get("BENTPIPE_SILENCE_S", "30")
    if not text.isdigit() or int(text) == 0:
        raise UsageError(
            f'BENTPIPE_SILENCE_S: "{text}" is no number of seconds', "give a whole number above 0"
        )
    return int(text)
