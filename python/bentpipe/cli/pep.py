"""`bentpipe pep`: the proxy on real sockets, a program of its own."""

from __future__ import annotations

import os
import sys

import click

from bentpipe import paths

PROGRAM = "bentpipe-pep"
_HELP = "crates/pep/src/program/help.txt"  # the program prints the same


@click.command(
    short_help="Run a proxy that ends QUIC connections on their way over a satellite.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def pep(arguments: tuple[str, ...]) -> None:
    """Run a proxy that ends QUIC connections on their way over a satellite."""
    if not arguments or "--help" in arguments or "-h" in arguments:
        click.echo((paths.root() / _HELP).read_text(), nl=False)
        return
    program = paths.program(PROGRAM)
    sys.stdout.flush()
    os.execv(program, [str(program), *arguments])  # signals and exit code are the program's own
