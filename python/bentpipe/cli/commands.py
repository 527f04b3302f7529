"""The commands of `bentpipe`."""

from __future__ import annotations

from pathlib import Path

import click

import bentpipe
from bentpipe import paths
from bentpipe.cli import exit_code
from bentpipe.cli.check import check
from bentpipe.cli.compare import compare
from bentpipe.cli.derive import derive
from bentpipe.cli.doctor import doctor
from bentpipe.cli.lab import lab
from bentpipe.cli.losses import losses_command
from bentpipe.cli.objectives import objectives
from bentpipe.cli.page import page
from bentpipe.cli.plot import plot
from bentpipe.cli.programs import PROGRAMS
from bentpipe.cli.qlog import qlog
from bentpipe.cli.replay import replay
from bentpipe.cli.run import build_report, run
from bentpipe.cli.runner import runner
from bentpipe.cli.scenarios import scenarios
from bentpipe.cli.shell import shell
from bentpipe.cli.site import site
from bentpipe.cli.stacks import stacks
from bentpipe.cli.study import study
from bentpipe.cli.trace import trace
from bentpipe.cli.worker import worker
from bentpipe.errors import UsageError


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"Pages that help texts name, such as docs/reference/campaigns.md, are in {paths.root()}",
)
@click.version_option(bentpipe.__version__, prog_name="bentpipe")
def cli() -> None:
    """The laboratory for transport over satellite links.

    \b
    Examples:
      bentpipe run                                  the demo campaign, in virtual time
      bentpipe run --scenario sat --client quinn --server quic-go
      bentpipe check quic-4-sat --server quinn      is it good enough, and did it get worse?
      bentpipe shell sat -- ping server             any command behind a satellite link
      bentpipe scenarios                            which paths there are
      bentpipe stacks                               which implementations of QUIC and TCP there are
      bentpipe perf server                          an iperf3 for QUIC, with `bentpipe perf client`
      bentpipe pep --config pep.toml                a proxy for QUIC over satellites
      bentpipe tcp-pep --config tcp-pep.toml        a proxy for TCP over satellites
    """


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def report(folder: Path) -> None:
    """Rebuild the web site of the run in FOLDER, and print its path.

    \b
    Example:
      bentpipe report runs/demo-20260401T120000Z
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder", "give the folder of a run")
    click.echo(build_report(folder))


for command in (
    run,
    shell,
    doctor,
    lab,
    scenarios,
    page,
    stacks,
    report,
    site,
    check,
    objectives,
    study,
    compare,
    trace,
    plot,
    losses_command,
    qlog,
    replay,
    runner,
    *PROGRAMS,
    worker,
):
    cli.add_command(command)


objectives.add_command(derive)


def invoke(arguments: list[str]) -> int:
    """Run one command; its exit code. Errors are printed, not raised, unless they are defects of Bentpipe."""
    return exit_code.of(cli, arguments, "bentpipe")
