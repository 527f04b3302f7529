"""`bentpipe objectives`: suites, and what they ask."""

from __future__ import annotations

import json

import click

from bentpipe import workload
from bentpipe.cli import completing
from bentpipe.cli.derive import derive
from bentpipe.cli.layout import folded
from bentpipe.objectives import suite
from bentpipe.objectives.suite import Objective


@click.group(invoke_without_command=True, short_help="List the suites of objectives for `bentpipe check`.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def objectives(context: click.Context, as_json: bool) -> None:
    """List the suites for `bentpipe check`, show one, or derive one from what TCP achieves.

    \b
    Examples:
      bentpipe objectives
      bentpipe objectives show quic-4-sat
      bentpipe objectives derive --scenario cnes-50-10 -o derived.toml
    """
    if context.invoked_subcommand is not None:
        return
    known = {name: suite.load(name) for name in suite.names()}
    if as_json:
        listed = [
            {"name": name, "title": one.title, "source": one.source, "objectives": len(one.objectives)}
            for name, one in known.items()
        ]
        click.echo(json.dumps(listed, indent=1))
        return
    column = max(map(len, known), default=5)
    click.echo(f"{'suite':<{column}}  objectives  title")
    for name, one in known.items():
        click.echo(f"{name:<{column}}  {len(one.objectives):>10}  {one.title}")
    click.echo("More: bentpipe objectives show SUITE")


@objectives.command()
@click.argument("name", metavar="SUITE", shell_complete=completing.suite)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show(name: str, as_json: bool) -> None:
    """Show what SUITE, a name or a .toml file, requires of stacks.

    \b
    Example:
      bentpipe objectives show own
    """
    one = suite.load(name)
    if as_json:
        listed = [
            {
                "name": each.name,
                "asked": each.asked,
                "scenario": each.setting.label,
                "workload": each.setting.workload,
                "treatment": each.setting.treatment,
                "client": each.setting.client,
                "server": each.setting.server,
            }
            for each in one.objectives
        ]
        about = {"name": one.name, "title": one.title, "source": one.source, "error": one.error}
        click.echo(json.dumps({**about, "seed": one.seed, "objectives": listed}, indent=1))
        return
    click.echo(folded(f"{one.name}: {one.title}", further="  "))
    if one.source:
        click.echo(folded(f"source: {one.source}", "  ", "  "))
    click.echo(f"  a verdict is wrong in at most {100 * one.error:g} % of cases")
    for setting in dict.fromkeys(each.setting for each in one.objectives):
        same = [each for each in one.objectives if each.setting == setting]
        click.echo(folded(_where(same[0]), further="  "))
        for each in same:
            click.echo(folded(f"{each.name}: {each.asked}", "  ", "    "))


def _where(one: Objective) -> str:
    """The setting of an objective, in a line."""
    own = one.setting
    between = "" if own.treatment == "direct" else f", {own.treatment}"
    ends = f", {own.client or 'any client'} → {own.server or 'any server'}"
    return f"{own.label}, {workload.title(own.workload)}{between}{ends if own.client or own.server else ''}"


objectives.add_command(derive)
