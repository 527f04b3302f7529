"""`bentpipe stacks install` and `prune`, and the progress of builds."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bentpipe.errors import Interrupted, UsageError
from bentpipe.stacks import install as installation
from bentpipe.stacks.building import BuildJob, BuildResult
from bentpipe.stacks.installable import Installable


def install(wanted: Sequence[Installable], force: bool, as_json: bool, strict: Collection[str]) -> int:
    """Install `wanted` and print the result of each; the exit code. Those named in `strict` may not be left
    out.
    """
    console = Console(stderr=as_json, highlight=False, soft_wrap=True)
    results = build(wanted, force, console)
    if as_json:
        click.echo(json.dumps([result.to_mapping() for result in results], indent=1))
    failed = any(one.failed is not None for one in results)
    left_out = [one.stack for one in results if one.left_out is not None]
    if not as_json and not failed and not left_out and all(one.seconds is None for one in results):
        console.print("nothing to do")
    if not failed and not set(strict).isdisjoint(left_out):
        raise UsageError("not all of the named stacks could be installed", "install what is missing first")
    return 1 if failed else 0


def build(wanted: Sequence[Installable], force: bool, console: Console) -> list[BuildResult]:
    """Build `wanted`, and show on the console how it goes; what became of each."""
    watcher = (
        InstallScreen(console)
        if console.is_terminal and not console.is_dumb_terminal
        else InstallLines(console)
    )
    with watcher:
        try:
            return installation.install(wanted, watcher, force)
        except KeyboardInterrupt:
            hint = "what is finished stays; the same command goes on with the others"
            raise Interrupted("interrupted", hint) from None


def prune(known: Sequence[Installable]) -> int:
    count, size = installation.prune(known)
    folders = "1 installation" if count == 1 else f"{count} installations"
    click.echo(f"removed {folders} that no stack here is of, {size / 1e6:.1f} MB")
    return 0


class InstallLines:
    """The progress as a line whenever something begins or ends."""

    every_s: float | None = None

    def __init__(self, console: Console) -> None:
        self.console = console

    def __enter__(self) -> InstallLines:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def begins(self, job: BuildJob) -> None:
        self.say(f"{job.wanted.name}: is being built")

    def ends(self, result: BuildResult) -> None:
        for line in _told(result):
            self.say(line)

    def looks(self, running: Sequence[BuildJob], waiting: int) -> None:
        pass

    def say(self, line: str) -> None:
        self.console.print(line, markup=False)


class InstallScreen(InstallLines):
    """The progress as `InstallLines`, and below them the builds under way: for how long, and their last line
    of output.
    """

    every_s = 0.25

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> InstallScreen:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        super().__exit__()

    def begins(self, job: BuildJob) -> None:
        pass

    def looks(self, running: Sequence[BuildJob], waiting: int) -> None:
        table = Table.grid(padding=(0, 2))
        for heading in ("name", "time", "line"):
            table.add_column(heading, no_wrap=True, overflow="ellipsis")
        for job in running:
            line = "waits for another command that builds it" if job.waits else job.last_line()
            table.add_row(job.wanted.name, _clock(job.elapsed_s), Text(line, style="dim"))
        if waiting:
            table.add_row("", "", Text(f"{waiting} more to build"))
        self._live.update(table, refresh=True)


def _told(result: BuildResult) -> list[str]:
    """The result for a stack, in lines."""
    name, version = result.stack, f" ({result.version})" if result.version else ""
    if result.left_out:
        return [f"left out: {result.left_out}"]
    if result.failed is None:
        how = "is installed" if result.seconds is None else f"installed in {result.seconds:.1f} s"
        note = [f"{name}: {result.note}"] if result.note else []
        return [f"{name}: {how}{version}", *note]
    lines = [f"error: {name} was not installed: {result.failed}"]
    lines += [f"  | {line}" for line in result.output]
    if result.log is not None:
        nothing = "" if result.output else "it printed nothing; "
        lines.append(f"hint: {nothing}the whole log: {result.log}")
    return lines


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
