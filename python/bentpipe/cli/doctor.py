"""`bentpipe doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import click

from bentpipe.cli.layout import folded
from bentpipe.errors import UsageError
from bentpipe.execution import doctor as looking
from bentpipe.execution import link_doctor
from bentpipe.execution.doctor import MachineCheck
from bentpipe.remote.links import Links


@click.command(short_help="Check whether real time works on this machine, or over a real link.")
@click.option(
    "--link",
    "links",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Check the links of FILE and their hosts instead.",
)
@click.option(
    "--clean", is_flag=True, help="With --link: remove the programs that were brought to the hosts."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def doctor(links: Path | None, clean: bool, as_json: bool) -> int:
    """Check whether this machine has what real time (bentpipe shell, bentpipe run --testbed emu) needs:
    kernel, privileges, namespaces, timers, processors, buffers, tools, stacks. It takes some seconds.

    With --link, check what real links need (bentpipe run --testbed remote): whether both hosts of each link
    of FILE can be reached by SSH, what they are, whether packets can be captured there, how far apart their
    clocks are, and whether packets cross the link.

    The exit code is 1 if real time, or a link, cannot work; virtual time needs none of it.

    \b
    Examples:
      bentpipe doctor
      bentpipe doctor --json
      bentpipe doctor --link examples/links.toml
      bentpipe doctor --link examples/links.toml --clean
    """
    if links is None:
        if clean:
            raise UsageError("--clean: there is no link", "name its file with --link FILE")
        return _show(looking.checks(), as_json, "real time", "; virtual time does")
    known = Links(links)
    look = link_doctor.clean if clean else link_doctor.checks
    found = chain.from_iterable(look(known, name) for name in known.names)
    return _show(found, as_json, "each link" if len(known.names) > 1 else "the link", "")


def _show(checks: Iterable[MachineCheck], as_json: bool, what: str, besides: str) -> int:
    """Print what is found while it is found; the exit code."""
    found = []
    for check in checks:
        found.append(check)
        if not as_json:
            click.echo(folded(f"{check.name}: {check.found}", f"{check.status:<4}  ", " " * 8))
            if check.hint:
                click.echo(folded(f"hint: {check.hint}", " " * 6, " " * 8))
    works = all(check.status != "fail" for check in found)
    here = " here" if besides else ""
    if as_json:
        click.echo(json.dumps({"works": works, "checks": [check.as_dict() for check in found]}, indent=1))
    elif works:
        click.echo(f"{what} works{here}")
    else:
        click.echo(f"{what} does not work{here}{besides}")
    return 0 if works else 1
