"""`bentpipe stacks`."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bentpipe import build as building
from bentpipe import conformance
from bentpipe import stacks as catalogue
from bentpipe.errors import UsageError
from bentpipe.stacks import Stack

_extra = click.option(
    "--stacks",
    "extra",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Further folders of stacks.",
)


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@_extra
@click.pass_context
def stacks(context: click.Context, as_json: bool, extra: tuple[Path, ...]) -> None:
    """List the stacks: the QUIC implementations that trials can use.

    \b
    Examples:
      bentpipe stacks
      bentpipe stacks show quinn
      bentpipe stacks test quinn
      bentpipe stacks test my-quic --stacks ~/my-quic
    """
    context.obj = catalogue.discover(extra)
    if context.invoked_subcommand is not None:
        return
    known: dict[str, Stack] = context.obj
    note_replaced(known)
    with ThreadPoolExecutor(4) as pool:
        versions = list(pool.map(conformance.version, known.values()))
    listed = list(zip(known.values(), versions, strict=True))
    if as_json:
        click.echo(json.dumps([_mapping(stack, version) for stack, version in listed], indent=1))
        return
    table = Table(box=None, pad_edge=False)
    for heading, narrow in (("name", True), ("version", False), ("repeats", True), ("modes", True)):
        table.add_column(heading, overflow="fold", no_wrap=narrow)
    table.add_column("options", overflow="fold")
    for stack, version in listed:
        table.add_row(
            stack.name,
            version or "not built",
            "yes" if stack.deterministic else "no",
            ", ".join(stack.commands),
            " ".join(stack.options),
        )
    console = Console(highlight=False)
    console.print(table)
    for stack in known.values():
        if len(stack.roles) == 1:
            console.print(f"{stack.name} is a {stack.roles[0]} only.")
    console.print("repeats: the same seed gives the same packets. More: bentpipe stacks show NAME")


def _mapping(stack: Stack, version: str | None) -> dict[str, object]:
    """A stack as `--json` prints it; its version is null if it is not built."""
    return {
        "name": stack.name,
        "title": stack.title,
        "language": stack.language,
        "home": stack.home,
        "version": version,
        "roles": stack.roles,
        "testcases": stack.testcases,
        "deterministic": stack.deterministic,
        "notes": stack.notes,
        "options": dict(stack.options),
        "modes": list(stack.commands),
        "folder": str(stack.folder),
    }


def note_replaced(known: dict[str, Stack]) -> None:
    """Say so if a folder of the user's stands in for a stack of the project."""
    for stack in catalogue.replaced(known):
        click.echo(f"note: {stack.folder} stands in for the stack {stack.name} of Bentpipe", err=True)


@stacks.command()
@click.argument("name")
@_extra
@click.pass_obj
def show(known: dict[str, Stack], name: str, extra: tuple[Path, ...]) -> None:
    """Show what is known of a stack.

    \b
    Example:
      bentpipe stacks show quic-go
    """
    stack = _find(name, known, extra)
    click.echo(f"{stack.name}: {stack.title} ({stack.language}), {stack.home}")
    for heading, text in (
        ("version", conformance.version(stack) or "not built"),
        ("roles", ", ".join(stack.roles)),
        ("test cases", ", ".join(stack.testcases)),
        ("repeats", "yes" if stack.deterministic else "no"),
        ("folder", str(stack.folder)),
        ("notes", stack.notes),
    ):
        if text:
            click.echo(f"  {heading:<11} {text}")
    if stack.options:
        example = ":".join([stack.name, *(f"{option}=…" for option in list(stack.options)[:2])])
        click.echo(f"options, as in {example}")
    else:
        click.echo("options: none")
    for option, meaning in stack.options.items():
        click.echo(f"  {option:<11} {meaning}")
    for mode in stack.commands:
        click.echo(f"{mode}: {stack.missing(mode) or ' '.join(stack.command(mode))}")


@stacks.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
@_extra
@click.pass_obj
def test(known: dict[str, Stack], name: str, as_json: bool, extra: tuple[Path, ...]) -> int:
    """Test a stack against the endpoint contract (endpoints/CONTRACT.md), and say what is wrong.

    \b
    Examples:
      bentpipe stacks test quinn
      bentpipe stacks test my-quic --stacks ~/my-quic
    """
    stack = _find(name, known, extra)
    results = []
    for check in conformance.checks(stack):
        results.append(check)
        if not as_json:
            _print(check)
    failed = [check for check in results if check.passed is False]
    skipped = sum(check.passed is None for check in results)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "stack": stack.name,
                    "passed": not failed,
                    "checks": [check.to_mapping() for check in results],
                },
                indent=1,
            )
        )
    else:
        click.echo(f"{len(results)} checks, {len(failed)} failed, {skipped} skipped")
    return 1 if failed else 0


@stacks.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_extra
@click.pass_obj
def build(known: dict[str, Stack], names: tuple[str, ...], extra: tuple[Path, ...]) -> int:
    """Build stacks, all of them if none is named. What needs a tool that is missing is left out.

    \b
    Examples:
      bentpipe stacks build
      bentpipe stacks build quinn quic-go
    """
    known = _with(known, extra)
    wanted = [catalogue.find(name, known) for name in names] or list(known.values())
    results = [building.build(stack) for stack in wanted]
    for result in results:
        if result.left_out:
            click.echo(f"left out: {result.left_out}", err=True)
        if result.failed:
            click.echo(f"error: {result.stack} was not built: {result.failed}", err=True)
    if names and any(result.left_out for result in results):
        raise UsageError("not all of the named stacks could be built", "install what is missing first")
    return 1 if any(result.failed for result in results) else 0


def _find(name: str, known: dict[str, Stack], extra: tuple[Path, ...]) -> Stack:
    known = _with(known, extra)
    stack = catalogue.find(name, known)
    note_replaced({name: stack})
    return stack


def _with(known: dict[str, Stack], extra: tuple[Path, ...]) -> dict[str, Stack]:
    """The stacks of the group, and those of a --stacks behind the subcommand."""
    return known | catalogue.discover(extra) if extra else known


def _print(check: conformance.Check) -> None:
    mark = {True: "ok  ", False: "FAIL", None: "skip"}[check.passed]
    click.echo(f"{mark} {check.name}" + (f": {check.detail}" if check.detail else ""))
    for line in check.output:
        click.echo(f"     | {line}")
    if check.folder is not None:
        click.echo(f"     left in: {check.folder}")
    if check.replay:
        click.echo(f"     replay:  {check.replay}")
    if check.passed is False and check.hint:
        click.echo(f"     hint: {check.hint}")
