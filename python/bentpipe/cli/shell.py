"""`bentpipe shell`."""

from __future__ import annotations

import json
import os
import signal

import click

from bentpipe import paths
from bentpipe.errors import UsageError
from bentpipe.plan import scenarios

HOSTS = ("client", "terminal", "gateway", "server")


class _Shell(click.Command):
    """A command whose arguments may be another command, which must not be taken for options."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        has_separator = "--" in args
        try:
            return super().parse_args(context, args)
        except click.NoSuchOption as error:
            if has_separator:
                raise
            raise UsageError(
                f"{error.option_name} is no option of bentpipe shell",
                "if it is one of the command's, write -- before the command, as in sat -- ping -c 3 server",
            ) from None


@click.command(cls=_Shell, short_help="Run any command behind an emulated satellite link.")
@click.argument("scenario")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--server",
    metavar="LINE",
    help="A command line for the host called server; it is started first, and ended last.",
)
@click.option(
    "--on",
    "host",
    type=click.Choice(HOSTS),
    default="client",
    show_default=True,
    help="Where the command runs.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change the scenario, as in forward.queue=1BDP; can be repeated.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**64 - 1),
    default=1,
    show_default=True,
    help="All randomness of the link comes from it.",
)
@click.option(
    "--meters", is_flag=True, help="Each second: rate, queue and losses of the link, on standard error."
)
@click.option(
    "--awake",
    is_flag=True,
    help="Keep idle processors from sleeping: more exact, above all in virtual machines.",
)
def shell(
    scenario: str,
    command: tuple[str, ...],
    server: str | None,
    host: str,
    settings: tuple[str, ...],
    seed: int,
    meters: bool,
    awake: bool,
) -> None:
    """Run COMMAND, or an interactive shell, behind the link of SCENARIO, in real time. No root is needed.

    There are four hosts, each in network namespaces of its own, that know each other by name, in IPv4 and
    IPv6: client, terminal, gateway, server. The satellite link lies between terminal and gateway. Nothing
    else can be reached from them, and nothing is left of them at the end. The exit code is the command's.

    A shell that is started on the client of another lies inside it: its path goes on through the outer one,
    to the outer one's server.

    \b
    Examples:
      bentpipe shell sat -- ping -c 3 server
      bentpipe shell sat --server 'python3 -m http.server 80' -- curl -O http://server/README.md
      bentpipe shell sat --set forward.rate=50Mbit/s --server 'iperf3 -s' --meters -- iperf3 -c server
      bentpipe shell sat
      bentpipe shell sat -- bentpipe shell leo-tum -- ping server
    """
    if server is not None and not server.strip():
        raise UsageError("--server: it is empty", "give a command line, as in --server 'iperf3 -s'")
    resolved = scenarios.resolve(scenario, settings)
    program = paths.program("bentpipe-emu")
    arguments = [str(program), "shell", "--scenario-fd", str(_readable(json.dumps(resolved.scenario)))]
    arguments += ["--on", host, "--seed", str(seed)]
    if server is not None:
        arguments += ["--server", server]
    if meters:
        arguments.append("--meters")
    if awake:
        arguments.append("--awake")
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a new program inherits that
        signal.signal(number, signal.SIG_DFL)
    os.execv(program, [*arguments, "--", *command])


def _readable(text: str) -> int:
    """A file descriptor from which the next program can read the text; it is in no folder."""
    descriptor = os.memfd_create("scenario", flags=0)
    with os.fdopen(descriptor, "w", closefd=False) as file:
        file.write(text)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
