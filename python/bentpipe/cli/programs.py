"""Commands that are separate programs: `bentpipe perf`, `bentpipe pep` and `bentpipe tcp-pep`."""

from __future__ import annotations

import os
import sys

import click

from bentpipe import paths


def _command(name: str, about: str, help_file: str) -> click.Command:
    """The command that starts `bentpipe-NAME`; the program prints the same help as this one does."""

    def start(arguments: tuple[str, ...]) -> None:
        if not arguments or "--help" in arguments or "-h" in arguments:
            click.echo((paths.root() / help_file).read_text(), nl=False)
            return
        program = paths.program(f"bentpipe-{name}")
        sys.stdout.flush()
        os.execv(program, [str(program), *arguments])  # signals and exit code are the program's own

    return click.Command(
        name,
        callback=start,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        help=about,
        short_help=about,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )


perf = _command(
    "perf", "Measure the goodput of QUIC over a path, as iperf3 does for TCP.", "products/perf/src/help.txt"
)
pep = _command(
    "pep",
    "Run a proxy that terminates QUIC connections at an end of a satellite link.",
    "products/pep/src/program/help.txt",
)
tcp_pep = _command(
    "tcp-pep",
    "Run a proxy that splits TCP connections at an end of a satellite link.",
    "products/tcp-pep/src/program/help.txt",
)
