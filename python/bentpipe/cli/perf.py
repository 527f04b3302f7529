"""`bentpipe perf`: the program of the noq stack, which measures when its first argument is `perf`."""

from __future__ import annotations

import os
import sys

import click

from bentpipe.errors import BentpipeError
from bentpipe.stacks import catalogue

STACK = "noq"
_HELP = "src/perf/help.txt"  # in the stack's folder; the program prints the same


@click.command(
    short_help="Measure what QUIC gets through a path, as iperf3 does for TCP.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def perf(arguments: tuple[str, ...]) -> None:
    """Measure what QUIC gets through a path, as iperf3 does for TCP."""
    stack = catalogue.find(STACK, catalogue.discover())
    if not arguments or "--help" in arguments or "-h" in arguments:
        click.echo((stack.folder / _HELP).read_text(), nl=False)
        return
    missing = stack.missing("sockets")
    if missing:
        raise BentpipeError(missing, f"bentpipe stacks install {STACK}")
    command = [*stack.command("sockets"), "perf", *arguments]
    sys.stdout.flush()
    os.execv(command[0], command)  # signals and exit code are the program's own
