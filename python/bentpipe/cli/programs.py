"""Commands that are separate programs, such as `bentpipe perf` and `bentpipe pep`."""

from __future__ import annotations

import os
import sys

import click

from bentpipe import paths


def _command(
    name: str, about: str, help_file: str, program_name: str | None = None, role: tuple[str, ...] = ()
) -> click.Command:
    """The command that starts `bentpipe-NAME`, or `program_name` in a role, which prints the same help."""

    def start(arguments: tuple[str, ...]) -> None:
        if not arguments or "--help" in arguments or "-h" in arguments:
            click.echo((paths.root() / help_file).read_text(), nl=False)
            return
        program = paths.program(program_name or f"bentpipe-{name}")
        sys.stdout.flush()
        os.execv(program, [str(program), *role, *arguments])  # signals and exit code are the program's own

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

_MASQUE = "products/masque/src/program"
masque = click.Group(
    "masque",
    help="Carry UDP over HTTP/3, by way of a proxy (MASQUE, RFC 9298).",
    commands=[
        _command(
            "proxy",
            "Run a proxy for UDP over HTTP/3: it sends clients' datagrams on to their targets.",
            f"{_MASQUE}/proxy/help.txt",
            "bentpipe-masque",
            ("proxy",),
        ),
        _command(
            "client",
            "Open a UDP port that leads to a target by way of such a proxy.",
            f"{_MASQUE}/client/help.txt",
            "bentpipe-masque",
            ("client",),
        ),
    ],
)
