"""`bentpipe check`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from bentpipe import progress
from bentpipe.analysis.sequential import MOST, Rigour
from bentpipe.cli import check_summary
from bentpipe.cli.compare import Share
from bentpipe.cli.run_options import Folder, split
from bentpipe.cli.stacks import note_replaced
from bentpipe.cli.summary import not_applicable
from bentpipe.errors import Interrupted, UsageError
from bentpipe.execution.awake import is_virtual_machine
from bentpipe.execution.settings import Settings
from bentpipe.labels import variant
from bentpipe.objectives import badge, junit, markdown, suite
from bentpipe.objectives.judge import verdict
from bentpipe.objectives.questions import CheckPlan, questions
from bentpipe.objectives.rounds import Base, CheckResult, CheckRounds, GrowingRun, Laboratory
from bentpipe.objectives.suite import Suite
from bentpipe.objectives.tally import exit_code
from bentpipe.plan.campaign import Plan
from bentpipe.runs.manifest import FILE as MANIFEST
from bentpipe.runs.run_folder import unused_folder
from bentpipe.schema.verdicts import FORMAT, Verdicts
from bentpipe.stacks import catalogue
from bentpipe.stacks.model import Stack
from bentpipe.stacks.time_limits import silence_s
from bentpipe.testbed import EMU, HERE

DEFAULT_SUITE = "quic-4-sat"
DEFAULT_STACK = "noq"
VERDICTS = "verdicts.json"
_BASE = "-base"  # behind the folder of a check: where the trials of --against-stack are


@dataclass(frozen=True)
class CheckRequest:
    """The request for a check, as the command line says it."""

    suite: str
    clients: tuple[str, ...]
    servers: tuple[str, ...]
    testbed: str
    seed: int | None
    most: int
    least: int | None
    against: Path | None
    against_stack: Path | None
    margin: float
    jobs: int | None
    out: Path | None
    resume: Path | None
    extra: tuple[Path, ...]


@click.command(short_help="Check stacks against objectives, or against yesterday.")
@click.argument("suite_name", required=False, default=DEFAULT_SUITE, metavar="[SUITE]")
@click.option(
    "--client",
    "clients",
    multiple=True,
    callback=split,
    metavar="STACK,…",
    help=f"Stacks, as in quinn:cc=bbr; comma-separated, can be repeated (default: {DEFAULT_STACK}).",
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    callback=split,
    metavar="STACK,…",
    help=f"Likewise; each client is checked with each (default: {DEFAULT_STACK}).",
)
@click.option(
    "--against",
    type=Folder(),
    metavar="RUN",
    help="Hold the same trials of an earlier check against these, seed by seed.",
)
@click.option(
    "--against-stack",
    type=Folder(),
    metavar="DIR",
    help="Run the base, too: the stack in DIR, under its name, in place of the one of today.",
)
@click.option(
    "--margin",
    type=Share(),
    default="1%",
    show_default=True,
    metavar="SHARE",
    help="With a base: changes that are smaller count as none.",
)
@click.option(
    "--most",
    type=click.IntRange(1, MOST),
    default=28,
    show_default=True,
    metavar="N",
    help="Trials of a setting, at most, before a verdict is undecided. One looks after 7, 14, 28, 56 and 112 "
    "of them, where a suite allows an error of 1 %.",
)
@click.option(
    "--least",
    type=click.IntRange(1, MOST),
    metavar="N",
    help="Trials of a setting, at least, whatever fewer would say: 14 for what is to be a base.",
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Other seeds than those of the suite.")
@click.option(
    "--testbed",
    type=click.Choice(HERE),
    default="sim",
    help="sim: virtual time (default). emu: real processes and sockets behind emulated links.",
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Trials at a time, as in bentpipe run.")
@click.option("-o", "--out", type=Folder(), metavar="DIR", help="Folder (default: runs/check-SUITE-TIME).")
@click.option("--resume", type=Folder(), metavar="DIR", help="Go on with the check in DIR.")
@click.option(
    "--stacks",
    "extra",
    multiple=True,
    type=Folder(),
    metavar="DIR",
    help="A further folder of stacks; can be repeated.",
)
@click.option("--junit", "junit_file", type=click.Path(path_type=Path), metavar="FILE", help="JUnit XML.")
@click.option(
    "--markdown",
    "markdown_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Markdown, for a pull request.",
)
@click.option(
    "--badge", "badge_file", type=click.Path(path_type=Path), metavar="FILE", help="A badge, as SVG."
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
def check(
    suite_name: str,
    junit_file: Path | None,
    markdown_file: Path | None,
    badge_file: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Check stacks against the objectives of SUITE, a name (see `bentpipe objectives`) or a .toml file;
    without one, quic-4-sat. Trials run until each verdict is sure, the same ones each time.

    Exit codes: 0 all objectives are met, 1 one is missed or something became worse, 3 undecided, 2 not
    understood.

    \b
    Examples:
      bentpipe check
      bentpipe check quic-4-sat --client noq --server quinn,quiche --junit out.xml
      bentpipe check quic-4-sat --stacks mine --client mine --server mine --markdown comment.md
      bentpipe check kuhn-2020 --client linux --server linux
      bentpipe check own --against runs/before
      bentpipe check quic-4-sat --stacks new/mine --server mine --against-stack old/mine
    """
    request = CheckRequest(suite_name, **given)
    outputs = {"--junit": junit_file, "--markdown": markdown_file, "--badge": badge_file}
    _refuse(request, outputs)
    asked = _prepare(request)
    place = request.resume or request.out or unused_folder(f"check-{Path(request.suite).stem}")
    with ExitStack() as opened:
        rounds = _open(request, asked, place, opened)
        found = _carry_out(rounds, place)
    verdicts = _verdicts(asked, found, rounds)
    text = json.dumps(msgspec.to_builtins(verdicts), indent=1)
    (place / VERDICTS).write_text(f"{text}\n")
    # Names and reasons are anybody's: nothing in them is markup.
    console = Console(stderr=as_json, highlight=False, markup=False)
    check_summary.show(verdicts, [one.objective for one in asked.asked], place, console)
    console.print(f"run: {place}", soft_wrap=True)
    if as_json:
        click.echo(text)
    if junit_file is not None:
        junit.write(verdicts, junit_file)
    if markdown_file is not None:
        markdown_file.write_text(markdown.text(verdicts, str(place)))
    if badge_file is not None:
        badge_file.write_text(badge.svg(verdicts))
    return exit_code(verdicts)


def _refuse(request: CheckRequest, outputs: Mapping[str, Path | None]) -> None:
    """UsageError for options that exclude each other, and for files that could not be written in the end."""
    if request.against is not None and request.against_stack is not None:
        raise UsageError("--against and --against-stack cannot both be given", "leave one of them out")
    if request.resume is not None and request.out is not None:
        raise UsageError("--out and --resume cannot both be given", "a resumed check stays in its folder")
    for option, path in outputs.items():
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            why = "is a folder" if path.is_dir() else f"cannot be written: there is no folder {path.parent}"
            raise UsageError(f"{option}: {path} {why}", "name a file in a folder that is there")


def _prepare(request: CheckRequest) -> CheckPlan:
    """The questions that are asked."""
    one: Suite = suite.load(request.suite)
    for role, named in (("client", request.clients), ("server", request.servers)):
        if named and not one.takes(role):
            raise UsageError(
                f"--{role}: each objective of {one.name} names its {role}",
                f"leave it out; `bentpipe objectives show {one.name}` says who takes part",
            )
    clients, servers = request.clients or (DEFAULT_STACK,), request.servers or (DEFAULT_STACK,)
    seed = one.seed if request.seed is None else request.seed
    found = questions(one, clients, servers)
    if not found:
        raise UsageError(f"{one.name}: nothing is held against anything but itself", "name another stack")
    return CheckPlan(one, tuple(found), seed, request.testbed)


def _open(request: CheckRequest, asked: CheckPlan, place: Path, opened: ExitStack) -> CheckRounds:
    """The check's run, and its base."""
    plan = asked.plan(dict.fromkeys((key for one in asked.asked for key in one.cells), 1))
    known = catalogue.discover(request.extra)
    note_replaced(known)
    laboratory = _laboratory(request, known, request.extra)
    base = Base.read(request.against, asked, plan) if request.against is not None else None
    others = None if request.against_stack is None else _with_base(request, known, plan)
    resume = request.resume is not None
    own = GrowingRun.open(place, plan, laboratory, resume)
    opened.callback(own.folder.close)
    for why in own.variants.left_out.values():
        click.echo(f"left out: {why}", err=True)
    for line in not_applicable(own.manifest):
        click.echo(line, err=True)
    runs = [own]
    if others is not None and request.against_stack is not None:
        whole = place.resolve()
        beside = (
            place.parent / f"{place.name}{_BASE}" if place.name else whole.with_name(f"{whole.name}{_BASE}")
        )
        there = resume and (beside / MANIFEST).exists()
        run = GrowingRun.open(beside, plan, _laboratory(request, others, (request.against_stack,)), there)
        opened.callback(run.folder.close)
        base = Base.growing(run)
        runs.append(run)
    for each in runs:
        for stack in each.changed:
            note = f"note: {stack} is not what it was when the check began: see {each.folder.path / MANIFEST}"
            click.echo(note, err=True)
    rigour = Rigour.of(asked.suite.error, request.most, request.least or asked.suite.least)
    return CheckRounds(asked, own, rigour, base, request.margin, lambda text: click.echo(text, err=True))


def _with_base(request: CheckRequest, known: dict[str, Stack], plan: Plan) -> dict[str, Stack]:
    """The stacks with that of --against-stack in place of the one of its name."""
    assert request.against_stack is not None
    (stack, *more) = catalogue.stacks_in(request.against_stack)
    if more:
        raise UsageError(f"--against-stack: {request.against_stack} has several stacks", "name one's folder")
    taking_part = {variant(label).stack for label in (*plan.clients, *plan.servers)}
    if stack.name not in taking_part:
        raise UsageError(
            f'--against-stack: {request.against_stack} is "{stack.name}", which takes no part',
            f"give the base the name of the stack that it stands for: {', '.join(sorted(taking_part))}",
        )
    return known | {stack.name: stack}


def _laboratory(request: CheckRequest, known: dict[str, Stack], folders: tuple[Path, ...]) -> Laboratory:
    awake = request.testbed == EMU.name and is_virtual_machine()
    return Laboratory(
        known=known,
        named=(*request.clients, *request.servers),
        stack_folders=tuple(str(folder.resolve()) for folder in folders),
        settings=Settings(jobs=request.jobs, silence_s=silence_s(), awake=awake),
        progress=progress.choose,
    )


def _carry_out(rounds: CheckRounds, place: Path) -> CheckResult:
    try:
        return rounds.run()
    except (KeyboardInterrupt, Interrupted) as error:
        raise Interrupted(str(error) or "interrupted", f"go on with: {_again(place)}") from None


def _again(place: Path) -> str:
    """The command that goes on with this one."""
    words = iter(["bentpipe", *sys.argv[1:]])
    kept = []
    for word in words:
        if word in ("-o", "--out", "--resume"):
            next(words, None)  # its value
        elif not word.startswith(("-o", "--out=", "--resume=")):
            kept.append(word)
    return shlex.join([*kept, "--resume", str(place)])


def _verdicts(asked: CheckPlan, found: CheckResult, rounds: CheckRounds) -> Verdicts:
    cells = rounds.own.cells
    return Verdicts(
        format=FORMAT,
        suite=asked.suite.name,
        title=asked.suite.title,
        source=asked.suite.source,
        testbed=asked.testbed,
        error=rounds.rigour.error,
        most=rounds.rigour.looks[-1],
        verdicts=[
            verdict(question, judged, cells)
            for question, judged in zip(asked.asked, found.judged, strict=True)
        ],
        against="" if rounds.base is None else str(rounds.base.path),
        margin=rounds.margin,
        changes=[one.change for one in found.changes],
        left_out=found.left_out,
    )
