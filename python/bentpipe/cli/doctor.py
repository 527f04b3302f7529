"""`bentpipe doctor`."""

from __future__ import annotations

import json

import click

from bentpipe.execution import doctor as looking


@click.command(short_help="Say whether real time works on this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def doctor(as_json: bool) -> int:
    """Look at what real time (bentpipe shell, bentpipe run --testbed emu) needs from this machine: kernel,
    privileges, namespaces, timers, processors, buffers, tools, stacks. It takes some seconds.

    The exit code is 1 if real time cannot work here; virtual time needs none of it.

    \b
    Examples:
      bentpipe doctor
      bentpipe doctor --json
    """
    found = []
    for check in looking.checks():
        found.append(check)
        if not as_json:
            click.echo(f"{check.status:<4}  {check.name}: {check.found}")
            if check.hint:
                click.echo(f"      hint: {check.hint}")
    works = all(check.status != "fail" for check in found)
    if as_json:
        click.echo(json.dumps({"works": works, "checks": [check.as_dict() for check in found]}, indent=1))
    elif works:
        click.echo("real time works here")
    else:
        click.echo("real time does not work here; virtual time does")
    return 0 if works else 1
