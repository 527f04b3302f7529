"""`bentpipe shell`."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import NoReturn

import click

from bentpipe import paths
from bentpipe.cli import completing
from bentpipe.errors import UsageError
from bentpipe.execution.guest_shell import GuestShell
from bentpipe.plan import scenarios
from bentpipe.plan.trial import IP_VERSIONS
from bentpipe.testbed import EMU, HERE, SIM

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


@click.command(cls=_Shell, short_help="Run any command behind a satellite link.")
@click.argument("scenario", shell_complete=completing.scenario)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--testbed",
    type=click.Choice(HERE),
    default=EMU.name,
    show_default=True,
    help="Real time (emu), or virtual time (sim).",
)
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
    help="The seed of all randomness of the link.",
)
@click.option(
    "--meters", is_flag=True, help="emu: each second rate, queue and losses of the link, on standard error."
)
@click.option(
    "--awake",
    is_flag=True,
    help="emu: keep idle processors from sleeping: more exact, above all in virtual machines.",
)
@click.option(
    "--ip",
    type=click.Choice([str(version) for version in IP_VERSIONS]),
    help="sim: the version of IP that both hosts have (default: 4).",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="sim: leave all packets in FILE, both sides of the link, as pcapng.",
)
def shell(
    scenario: str,
    command: tuple[str, ...],
    testbed: str,
    server: str | None,
    host: str,
    settings: tuple[str, ...],
    seed: int,
    meters: bool,
    awake: bool,
    ip: str | None,
    trace: Path | None,
) -> int:
    """Run COMMAND, or an interactive shell, behind the link of SCENARIO, in real time. Root is not needed.

    There are four hosts, each in its own network namespaces, that know each other by name, in IPv4 and
    IPv6: client, terminal, gateway, server. The satellite link lies between terminal and gateway. They
    reach nothing else, and nothing of them remains at the end. The exit code is the command's.

    A shell that is started on the client of another lies inside it: its path goes on through the outer one,
    to the outer one's server.

    \b
    Examples:
      bentpipe shell sat -- ping -c 3 server
      bentpipe shell sat --server 'python3 -m http.server 80' -- curl -O http://server/README.md
      bentpipe shell sat --set forward.rate=50Mbit/s --server 'iperf3 -s' --meters -- iperf3 -c server
      bentpipe shell sat
      bentpipe shell sat -- bentpipe shell leo-tum -- ping server

    With --testbed sim, the commands of client and server run in virtual time, each on its own Linux
    kernel: seconds pass in a moment, and the same command, seed and files give the same packets. COMMAND
    starts when the server's listens, and has no standard input. Both see this machine's files; they write
    in the current folder and in TMPDIR alone. Standard output is COMMAND's; what the server prints goes
    to standard error, and so does the line of times, packets and their hash at the end. Ctrl-C ends
    everything.

    \b
    Example:
      bentpipe shell --testbed sim sat --server 'python3 -m http.server 80' -- curl -O http://server/README.md
    """
    if server is not None and not server.strip():
        raise UsageError("--server: it is empty", "give a command line, as in --server 'iperf3 -s'")
    only_of_emu = {"--on": host != "client", "--meters": meters, "--awake": awake}
    only_of_sim = {"--ip": ip is not None, "--trace": trace is not None}
    _refuse(testbed, only_of_emu if testbed == SIM.name else only_of_sim)
    resolved = scenarios.resolve(scenario, settings).scenario
    if testbed == SIM.name:
        return _run_in_guests(
            GuestShell(
                scenario=resolved,
                server=server or "",
                command=command,
                seed=seed,
                ip=int(ip or IP_VERSIONS[0]),
                trace=trace,
            )
        )
    arguments = ["--scenario-fd", str(_readable(json.dumps(resolved))), "--on", host, "--seed", str(seed)]
    if server is not None:
        arguments += ["--server", server]
    if meters:
        arguments.append("--meters")
    if awake:
        arguments.append("--awake")
    return _become_emulator([*arguments, "--", *command])


def _become_emulator(arguments: list[str]) -> NoReturn:
    program = paths.program("bentpipe-emu")
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a new program inherits that
        signal.signal(number, signal.SIG_DFL)
    os.execv(program, [str(program), "shell", *arguments])


def _refuse(testbed: str, given: dict[str, bool]) -> None:
    """An error for an option of the other testbed."""
    for option, is_given in given.items():
        if is_given:
            raise UsageError(f"{option} is not for --testbed {testbed}", "see bentpipe shell --help")


def _run_in_guests(commands: GuestShell) -> int:
    if not commands.server:
        raise UsageError(
            "virtual time needs a command for the server, too",
            "give its command line, as in --server 'python3 -m http.server 80'",
        )
    if not commands.command:
        raise UsageError("virtual time has no interactive shell", "write -- and a command at the end")
    signal.signal(signal.SIGHUP, signal.default_int_handler)  # the terminal goes away: as with Ctrl-C
    return commands.run()


def _readable(text: str) -> int:
    """A file descriptor from which the next program can read the text; it is in no folder."""
    descriptor = os.memfd_create("scenario", flags=0)
    with os.fdopen(descriptor, "w", closefd=False) as file:
        file.write(text)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
