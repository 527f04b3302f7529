"""`bentpipe check`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from bentpipe.analysis.sequential import MOST
from bentpipe.cli import check_summary, completing, watching
from bentpipe.cli.compare import Share
from bentpipe.cli.run_options import Folder, split
from bentpipe.cli.stacks import note_replaced
from bentpipe.cli.summary import not_applicable
from bentpipe.errors import Interrupted, UsageError
from bentpipe.objectives import badge, junit, markdown
from bentpipe.objectives.check_request import DEFAULT_STACK, CheckRequest
from bentpipe.objectives.rounds import CheckResult, CheckRounds
from bentpipe.objectives.tally import exit_code
from bentpipe.runs.manifest import FILE as MANIFEST
from bentpipe.runs.run_folder import unused_folder
from bentpipe.stacks import catalogue
from bentpipe.testbed import HERE

DEFAULT_SUITE = "quic-4-sat"
VERDICTS = "verdicts.json"


@click.command(short_help="Check stacks against objectives, or against an earlier run.")
@click.argument(
    "suite_name", required=False, default=DEFAULT_SUITE, metavar="[SUITE]", shell_complete=completing.suite
)
@click.option(
    "--client",
    "clients",
    multiple=True,
    shell_complete=completing.stack,
    callback=split,
    metavar="STACK,…",
    help=f"Stacks, as in quinn:cc=bbr; comma-separated, can be repeated (default: {DEFAULT_STACK}).",
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    shell_complete=completing.stack,
    callback=split,
    metavar="STACK,…",
    help=f"Stacks, as for --client; each client is checked with each (default: {DEFAULT_STACK}).",
)
@click.option(
    "--against",
    type=Folder(),
    metavar="RUN",
    help="Compare with the same trials of an earlier check, seed by seed.",
)
@click.option(
    "--against-stack",
    type=Folder(),
    metavar="DIR",
    help="Run the base, too: the stack in DIR replaces the current one of its name.",
)
@click.option(
    "--margin",
    type=Share(),
    default="1%",
    show_default=True,
    metavar="SHARE",
    help="With a base: ignore changes smaller than this.",
)
@click.option(
    "--most",
    type=click.IntRange(1, MOST),
    default=28,
    show_default=True,
    metavar="N",
    help="The most trials of a setting before a verdict is undecided. It is decided after 7, 14, 28, 56 and "
    "112 of them, where a suite allows an error of 1 %.",
)
@click.option(
    "--least",
    type=click.IntRange(1, MOST),
    metavar="N",
    help="The fewest trials of a setting, even if fewer would decide: 14 for a later base.",
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="A seed other than that of the suite.")
@click.option(
    "--testbed",
    type=click.Choice(HERE),
    default="sim",
    help="sim: virtual time (default). emu: real processes and sockets behind emulated links.",
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Trials at a time, as in bentpipe run.")
@click.option("-o", "--out", type=Folder(), metavar="DIR", help="Folder (default: runs/check-SUITE-TIME).")
@click.option("--resume", type=Folder(), metavar="DIR", help="Continue the check in DIR.")
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
@watching.OPTION
def check(
    suite_name: str,
    junit_file: Path | None,
    markdown_file: Path | None,
    badge_file: Path | None,
    as_json: bool,
    watch: bool,
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
    asked = request.plan()
    place = request.resume or request.out or unused_folder(f"check-{Path(request.suite).stem}")
    with watching.watched(watch) as show:
        with ExitStack() as opened:
            known = catalogue.discover(request.extra)
            note_replaced(known)
            rounds = request.open_rounds(asked, known, place, opened)
            show(rounds.own.folder.path)
            _say_what_differs(rounds)
            verdicts = rounds.verdicts(_carry_out(rounds, place))
        text = json.dumps(msgspec.to_builtins(verdicts), indent=1)
        (place / VERDICTS).write_text(f"{text}\n")
        # Names and reasons are anybody's: nothing in them is markup.
        console = Console(stderr=as_json, highlight=False, markup=False)
        check_summary.show(verdicts, [one.objective for one in asked.questions], place, console)
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


def _say_what_differs(rounds: CheckRounds) -> None:
    """Print what is left out of the check, and which stacks have changed since it began."""
    for why in rounds.own.variants.left_out.values():
        click.echo(f"left out: {why}", err=True)
    for line in not_applicable(rounds.own.manifest):
        click.echo(line, err=True)
    for each in rounds.runs:
        for stack in each.changed:
            note = f"note: {stack} is not what it was when the check began: see {each.folder.path / MANIFEST}"
            click.echo(note, err=True)


def _carry_out(rounds: CheckRounds, place: Path) -> CheckResult:
    try:
        return rounds.run(lambda text: click.echo(text, err=True))
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
