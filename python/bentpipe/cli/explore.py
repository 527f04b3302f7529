"""`bentpipe explore`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bentpipe.cli import completing
from bentpipe.cli.run_options import Folder, split
from bentpipe.errors import UsageError
from bentpipe.plan.treatments import DIRECT
from bentpipe.schema.explore import ExploredSender, ExploredState
from bentpipe.stacks.time_limits import silence_s

SCENARIO = "sat"
SERVERS = ("noq:cc=cubic", "noq:cc=bentpipe")
WORKLOAD = "transfer:1MB"
SEEDS = 10


def _of_senders(
    name: str, metavar: str, text: str, completer: completing.Completer | None = None
) -> Callable[[Any], Any]:
    return click.option(f"--{name}", multiple=True, metavar=metavar, help=text, shell_complete=completer)


def _servers(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """As `split`, but both senders may have the same."""
    return tuple(one for value in values for one in split(context, parameter, (value,)))


@click.command(short_help="Move a path's sliders in the browser and see the transfer change.")
@click.option(
    "--scenario",
    default=SCENARIO,
    show_default=True,
    metavar="NAME",
    shell_complete=completing.scenario,
    help="A scenario, or a .toml file.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change the scenario, as in forward.queue=1BDP; can be repeated.",
)
@_of_senders(
    "client",
    "STACK",
    "As in bentpipe run; twice for two senders. Default: the server's stack.",
    completing.stack,
)
@click.option(
    "--server",
    multiple=True,
    callback=_servers,
    shell_complete=completing.stack,
    metavar="STACK",
    help=f"As in bentpipe run; twice for two senders. Default: {' and '.join(SERVERS)}.",
)
@_of_senders(
    "treatment", "WHAT", "As in bentpipe run; twice for two senders. Default: direct.", completing.treatment
)
@_of_senders("workload", "WHAT", f"As in bentpipe run; twice for two senders. Default: {WORKLOAD}.")
@_of_senders(
    "protocol", "HTTP", "Of pages and live streams: h1, h2 or h3, empty for none; twice for two senders."
)
@click.option(
    "--seeds", type=click.IntRange(1, 100), default=SEEDS, show_default=True, help="Trials of each sender."
)
@click.option("--seed", type=click.IntRange(0, 2**53 - 1), metavar="N", help="The seed of all randomness.")
@click.option(
    "--stacks", "extra", multiple=True, type=Folder(), metavar="DIR", help="A further folder of stacks."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: one that is free."
)
@click.option("--no-browser", is_flag=True, help="Open no browser: print the address alone.")
def explore(
    extra: tuple[Path, ...],
    port: int,
    no_browser: bool,
    scenario: str,
    seeds: int,
    seed: int | None,
    **given: Any,
) -> None:
    """Open a laboratory in the browser: a path, two senders, and sliders. Each change runs the trials anew in
    virtual time and draws them.

    The page is served by this machine to itself, at an address with a secret in it; Ctrl-C ends it.

    \b
    Examples:
      bentpipe explore
      bentpipe explore --scenario sat --server noq:cc=cubic --server noq:cc=cubic:ss=trains
      bentpipe explore --scenario geo-tum --server noq --treatment direct --treatment quic-pep
      bentpipe explore --scenario satloss --workload transfer:10MiB --no-browser
    """
    from bentpipe.explore.access import Access
    from bentpipe.explore.app import Explorer
    from bentpipe.explore.exploration import default_seed
    from bentpipe.explore.serving import open_browser

    state = ExploredState(
        scenario=str(Path(scenario).resolve()) if scenario.endswith(".toml") else scenario,
        settings=list(given["settings"]),
        senders=_senders(given),
        seeds=seeds,
        seed=default_seed() if seed is None else seed,
    )

    def ready(access: Access) -> None:
        click.echo(f"explore: {access.address}")
        if not no_browser and not open_browser(access):
            click.echo("note: there is no browser here: open this address in one", err=True)
        click.echo("Ctrl-C ends it", err=True)

    Explorer(state, extra, silence_s(), port).serve(ready)


def _senders(given: dict[str, Any]) -> list[ExploredSender]:
    servers = given["server"] or SERVERS
    columns = {
        "client": given["client"] or tuple(one.partition(":")[0] for one in servers),
        "server": servers,
        "treatment": given["treatment"] or (DIRECT,),
        "workload": given["workload"] or (WORKLOAD,),
        "protocol": given["protocol"] or ("",),
    }
    count = max(map(len, columns.values()))
    for name, values in columns.items():
        if len(values) > 2:
            raise UsageError(f"--{name}: {len(values)} are given", "the page has two senders")
    return [
        ExploredSender(**{name: values[min(place, len(values) - 1)] for name, values in columns.items()})
        for place in range(count)
    ]
