"""`bentpipe scenarios`."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterator
from typing import Any

import click

from bentpipe.cli import completing, courses, drawing
from bentpipe.cli.layout import WIDTH, folded
from bentpipe.cli.scenarios_import import import_
from bentpipe.cli.scenarios_orbit import orbit
from bentpipe.cli.scenarios_rain import rain
from bentpipe.errors import BentpipeError
from bentpipe.plan import scenarios as catalogue
from bentpipe.plan.scenarios import Scenario

_TOLD = 6  # steps of a rate or a delay, before they are counted


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def scenarios(context: click.Context, as_json: bool) -> None:
    """List the scenarios: the paths that trials can run over.

    \b
    Examples:
      bentpipe scenarios
      bentpipe scenarios show sat
      bentpipe scenarios show sat --set forward.queue=1BDP
      bentpipe scenarios import ping.txt --rate 100/20Mbit/s -o mine.toml
    """
    if context.invoked_subcommand is not None:
        return
    summaries: dict[str, dict[str, Any]] = {}
    broken: list[BentpipeError] = []
    for name in catalogue.names():
        try:
            summaries[name] = catalogue.resolve(name).summary
        except catalogue.ScenarioError as error:
            broken.append(error)
    if as_json:
        click.echo(json.dumps([{"name": name} | summary for name, summary in summaries.items()], indent=1))
    else:
        _list(summaries)
    if broken:
        raise broken[0]


def _list(summaries: dict[str, dict[str, Any]]) -> None:
    """A scenario takes two lines, since its title is as long as all the rest: the numbers, then the title."""
    width = min(shutil.get_terminal_size().columns, WIDTH)
    column = max(map(len, summaries), default=0)
    rates = {name: _rates(one) for name, one in summaries.items()}
    rate = max(map(len, rates.values()), default=0)
    click.echo(f"{'name':<{column}}  {'RTT ms':>6}  {'Mbit/s':>{rate}}  {'loss':<6}  queue")
    for name, one in summaries.items():
        numbers = f"{one['rtt_ms']:>6g}  {rates[name]:>{rate}}  {_loss(one):<6}  {_both(one, 'queue')}"
        line = f"{name:<{column}}  {numbers}"
        click.echo(line if len(line) <= width else f"{line[: width - 1]}…")
        for path in one.get("paths", [])[1:]:
            numbers = (
                f"{path['rtt_ms']:>6g}  {_rates(path):>{rate}}  {_loss(path):<6}  {_both(path, 'queue')}"
            )
            click.echo(f"{'  and ' + path['name']:<{column}}  {numbers}")
        click.echo(textwrap.fill(one["title"], width, initial_indent="    ", subsequent_indent="    "))
    click.echo("Rates are forward (server → client) / return, LOWEST-HIGHEST where they change.")
    click.echo("More: bentpipe scenarios show NAME")


for command in (import_, orbit, rain):
    scenarios.add_command(command)


@scenarios.command()
@click.argument("name", shell_complete=completing.scenario)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a key first.")
@click.option("--json", "as_json", is_flag=True, help="Print the scenario in full as JSON.")
def show(name: str, settings: tuple[str, ...], as_json: bool) -> None:
    """Show a scenario as Bentpipe reads it, with its source. NAME may be a path to a .toml file.

    Each direction is drawn as what packets meet, in that order. What changes with time is drawn in a line;
    --json has every step of it. Handovers and outages have their times, and what is known of the satellites.

    \b
    Examples:
      bentpipe scenarios show satloss
      bentpipe scenarios show sat --set forward.queue=1BDP --set forward.rate="50 Mbit/s"
      bentpipe scenarios show my-link.toml --json
    """
    found = catalogue.resolve(name, settings)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "label": found.label,
                    "scenario": found.scenario,
                    "summary": found.summary,
                    "courses": found.courses,
                    "interruptions": found.interruptions,
                    "path": found.path,
                },
                indent=2,
            )
        )
        return
    _show(found)


def _show(found: Scenario) -> None:
    one = found.summary
    click.echo(folded(f"{found.label}: {one['title']}", further="  "))
    for heading, text in (
        ("round trip", _round_trips(one)),
        ("paths", ", ".join(path["name"] for path in one.get("paths", []))),
        ("timeout", f"{one['timeout_s']:g} s"),
        ("source", one["source"]),
        ("notes", one["notes"]),
    ):
        if text:
            click.echo(folded(text, f"  {heading:<11} ", " " * 14))
    for direction, way in found.path.items():
        click.echo(f"{direction}:")
        for line in drawing.drawn(way, courses.has_blocks()):
            click.echo(line)
    values = dict(_flat(found.scenario))
    if found.courses or found.interruptions:
        drawn = any(course["drawn"] for course in found.courses.values())
        of_one = " (what is drawn is that of one trial; others have others)"
        click.echo(f"over time{of_one if drawn else ''}:")
    for key, course in found.courses.items():
        both_ways = courses.of_both_ways(key, found.courses)
        if both_ways and ".return." in key:
            continue
        trace = key.endswith(".rate") and f"{key}.trace" in values
        for line in courses.drawn(key, course, trace=trace, both_ways=both_ways):
            click.echo(line)
    for line in courses.interrupted(found.interruptions):
        click.echo(line)
    click.echo("in full:")
    for key, value in values.items():
        if key not in ("name", "title", "source", "notes"):
            click.echo(folded(f"{key} = {_in_full(value)}", "  ", "    "))


def _in_full(value: Any) -> str:
    """A value of a scenario: steps one by one, or how many they are; other lists likewise."""
    if not isinstance(value, list):
        return str(value)
    if len(value) > _TOLD:
        return f"{len(value)} of them, all by --json"
    return "; ".join(map(_one_of, value))


def _one_of(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key} {text}" for key, text in value.items())
    if isinstance(value, list):
        at, step = value
        return f"from {at} {step}"
    return str(value)


def _round_trips(summary: dict[str, Any]) -> str:
    """That of the path, or of each path with its name."""
    each = summary.get("paths")
    if each is None:
        return f"{summary['rtt_ms']:g} ms"
    return ", ".join(f"{path['name']} {path['rtt_ms']:g} ms" for path in each)


def _rates(summary: dict[str, Any]) -> str:
    return " / ".join(_range(summary, direction) for direction in ("forward", "return"))


def _range(summary: dict[str, Any], direction: str) -> str:
    """A rate in Mbit/s, or the lowest and the highest of one that changes."""
    lowest, rate = summary[f"{direction}_rate_lowest_bps"], _mbit(summary[f"{direction}_rate_bps"])
    return rate if lowest is None else f"{_mbit(lowest)}-{rate}"


def _loss(summary: dict[str, Any]) -> str:
    """A ratio as it is; a model of bursts takes a line of its own, in `show`."""
    loss = _both(summary, "loss")
    return loss if len(loss) <= len("0.01 % / 0.01 %") else "bursts"


def _both(summary: dict[str, Any], what: str) -> str:
    forward, back = summary[f"forward_{what}"], summary[f"return_{what}"]
    return forward if forward == back else f"{forward} / {back}"


def _mbit(rate_bps: float | None) -> str:
    return "unlimited" if rate_bps is None else f"{rate_bps / 1e6:g}"


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value
