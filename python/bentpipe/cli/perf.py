"""`bentpipe perf`: a program of its own, which measures over real sockets."""

from __future__ import annotations

import os
import sys

import click

from bentpipe import paths

PROGRAM = "bentpipe-perf"
_HELP = "crates/perf/src/help.txt"  # the program prints the same


@click.command(
    short_help="Measure what QUIC gets through a path, as iperf3 does for TCP.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def perf(arguments: tuple[str, ...]) -> None:
    """Measure what QUIC gets through a path, as iperf3 does for TCP."""
    if not arguments or "--help" in arguments or "-h" in arguments:
        click.echo((paths.root() / _HELP).read_text(), nl=False)
        return
    program = paths.program(PROGRAM)
    sys.stdout.flush()
    os.execv(program, [str(program), *arguments])  # signals and exit code are the program's own
