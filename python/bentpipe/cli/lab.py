"""`bentpipe lab`."""

from __future__ import annotations

import subprocess

import click

from bentpipe import paths
from bentpipe.cli import completing
from bentpipe.errors import Interrupted
from bentpipe.remote.lab import LinkLaboratory


@click.command(short_help="Run a link of known properties between two SSH servers, to test real links on.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--scenario",
    default="sat",
    show_default=True,
    metavar="NAME",
    shell_complete=completing.scenario,
    help="The scenario of the link.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change the scenario, as in forward.queue=1BDP; can be repeated.",
)
def lab(command: tuple[str, ...], scenario: str, settings: tuple[str, ...]) -> int:
    """Run a laboratory for --testbed remote: two SSH servers on this machine, each in its own network
    namespaces, connected only by the emulated link of a scenario. Its hosts are named in examples/links.toml.
    It runs until Ctrl-C, or until COMMAND ends, whose exit code is then this command's.

    It needs root, and sshd of Debian's openssh-server, which it starts with its own keys.

    \b
    Examples:
      bentpipe lab &
      bentpipe doctor --link examples/links.toml
      bentpipe lab -- bentpipe run --testbed remote --link examples/links.toml \\
        --client quinn,quic-go --server noq,quinn --iterations 3
    """
    with LinkLaboratory(scenario, settings) as laboratory:
        if command:
            try:
                return subprocess.run(command, check=False).returncode
            except FileNotFoundError:
                click.echo(f"error: {command[0]}: command not found", err=True)
                return 127
        example = paths.root() / "examples" / "links.toml"
        click.echo(f"two hosts behind {scenario}, in {laboratory.place}: {example} leads there")
        click.echo("the laboratory is there until Ctrl-C")
        try:
            return laboratory.wait()
        except KeyboardInterrupt:
            raise Interrupted("the laboratory has ended") from None
