"""The output of `bentpipe COMMAND --help`, for every command."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from bentpipe import paths
from bentpipe.cli.commands import cli

WIDTH = 100
# Their programs have options, and a --help, of their own.
PROGRAMS = (
    "bentpipe perf",
    "bentpipe pep",
    "bentpipe tcp-pep",
    "bentpipe masque proxy",
    "bentpipe masque client",
)


def write(_root: Path) -> str:
    """A section for each command, in the order of `bentpipe --help`."""
    context = click.Context(cli, info_name="bentpipe", terminal_width=WIDTH, **cli.context_settings)
    return "\n\n".join(_sections(context))


def _sections(context: click.Context) -> Iterator[str]:
    command, name = context.command, context.command_path
    if name in PROGRAMS:
        says = f"{command.get_short_help_str(WIDTH)} `{name} --help` prints its options."
        yield f"## `{name}`\n\n{textwrap.fill(says, WIDTH, break_on_hyphens=False)}"
    else:
        # The help names the folder of the checkout, which is nobody else's.
        text = command.get_help(context).replace(str(paths.root()), "the root of the checkout")
        yield f"## `{name}`\n\n```text\n{text.rstrip()}\n```"
    if isinstance(command, click.Group):
        for one, below in command.commands.items():
            yield from _sections(click.Context(below, parent=context, info_name=one))
