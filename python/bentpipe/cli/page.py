"""`bentpipe page`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from bentpipe import packed
from bentpipe.analysis import page_har
from bentpipe.cli import made_file
from bentpipe.cli.layout import WIDTH, folded
from bentpipe.errors import UsageError
from bentpipe.workload import page as pages
from bentpipe.workload.page import Page, Resource, har, toml


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def page(context: click.Context, as_json: bool) -> None:
    """List the pages, show one, make one of a recorded visit, or export the page of a trial.

    \b
    Examples:
      bentpipe page
      bentpipe page show kosek
      bentpipe page import visit.har -o visit.toml
      bentpipe page har RUN/trials/ID -o out.har
    """
    if context.invoked_subcommand is not None:
        return
    known = {name: pages.load(name) for name in pages.names()}
    if as_json:
        listed = [
            {"name": name, "title": one.title, "resources": len(one.resource), "bytes": one.size_bytes}
            for name, one in known.items()
        ]
        click.echo(json.dumps(listed, indent=1))
        return
    column = max(map(len, known), default=4)
    click.echo(f"{'name':<{column}}  {'resources':>9}  {'size':>8}  title")
    for name, one in known.items():
        click.echo(_cut(f"{name:<{column}}  {len(one.resource):>9}  {_size(one.size_bytes):>8}  {one.title}"))
    click.echo("More: bentpipe page show NAME")


@page.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print the page in full as JSON.")
def show(name: str, as_json: bool) -> None:
    """Show a page: its resources, and which of them leads to which. NAME may be a path to a .toml file.

    \b
    Examples:
      bentpipe page show kosek
      bentpipe page show visit.toml --json
    """
    one = pages.load(name)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(one), indent=1))
        return
    click.echo(f"{Path(name).stem if name.endswith('.toml') else name}: {one.title}")
    for heading, text in (("source", one.source), ("notes", one.notes), *_facts(one)):
        if text:
            click.echo(folded(text, f"  {heading:<8} ", " " * 11))
    click.echo(f"{'urgency':>7}  {'size':>8}  {'found':<18} resource")
    for line in _tree(one):
        click.echo(_cut(line))


@page.command("import")
@click.argument("file", metavar="FILE.har", type=click.Path(path_type=Path, dir_okay=False))
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml",
              help="Where the page goes (default: FILE.toml in the current folder).")  # fmt: skip
@click.option("--page", "number", type=click.IntRange(min=1), metavar="N",
              help="The page of a file that has several, as Browsertime and WebPageTest write: the Nth "
              "(default: that of the first document).")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def import_(file: Path, out: Path | None, number: int | None, force: bool) -> None:
    """Make a page from a recorded visit: an HTTP Archive (HAR), as a browser's developer tools save it, plain
    or packed by gzip or zstd.

    \b
    Examples:
      bentpipe page import visit.har -o visit.toml && bentpipe page show visit.toml
      bentpipe page import browsertime.har.gz --page 2 -o second.toml
    """
    out = out or Path(f"{Path(packed.plain_name(file)).stem}.toml")
    if out.suffix != ".toml":
        raise UsageError(f"-o: {out} does not end with .toml", "a page is known by that: -o visit.toml")
    made_file.check(out, force)
    found = har.read(file, number)
    made_file.write(out, toml.text(found.page))
    click.echo(f"{out}: {len(found.page.resource)} resources, {_size(found.page.size_bytes)}")
    if found.number and len(found.titles) > 1:
        others = "" if number else " (others: --page)"
        title = found.titles[found.number - 1]
        click.echo(f"  page {found.number} of {len(found.titles)}{others}: {title}", err=True)
    for reason, count in sorted(found.left_out.items()):
        first = f", the first: {found.unread}" if reason == "cannot be read" else ""
        click.echo(f"  left out, {reason}: {count}{first}", err=True)


@page.command("har")
@click.argument("trial", metavar="RUN/trials/ID", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.har",
              help="Where it goes (default: ID.har in the current folder).")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def har_(trial: Path, out: Path | None, force: bool) -> None:
    """Export the page of a trial as an HTTP Archive (HAR), which other tools open.

    Runs keep what it is made of with the traces of their trials.

    \b
    Example:
      bentpipe page har runs/kosek/trials/geo-tum_noq_noq_1-0a1b2c3d -o out.har
    """
    archive = page_har.of_trial(trial)
    out = out or Path(f"{trial.resolve().name}.har")
    made_file.check(out, force)
    made_file.write(out, json.dumps(archive, indent=1) + "\n")
    click.echo(f"{out}: {len(archive['log']['entries'])} entries")


def _facts(one: Page) -> Iterator[tuple[str, str]]:
    yield "size", f"{len(one.resource)} resources, {_size(one.size_bytes)}"
    parts = (f"{count} {kind} ({_size(total)})" for kind, (count, total) in one.by_type.items())
    yield "of that", ", ".join(parts)
    chain = one.longest_chain
    yield "longest", f"{len(chain)} requests one after the other: {' → '.join(chain)}"


def _tree(one: Page) -> Iterator[str]:
    """A line for each resource, below and right of its initiator."""
    below: dict[str, list[Resource]] = {}
    for each in one.resource:
        below.setdefault(each.initiator, []).append(each)
    waiting = list(reversed(below.get("", [])))
    while waiting:
        each = waiting.pop()
        waiting += reversed(below.get(each.path, []))
        indent = "  " * (one.depth[each.path] - 1)
        columns = f"{each.asked_with:>7}  {_size(each.bytes):>8}  {_found(each):<18}"
        yield f"{columns} {indent}{each.path}  {each.type}"


def _found(one: Resource) -> str:
    """The time at which it is found, and how long after that it is requested: `at 25 %`, `at its end + 20
    ms`.
    """
    if not one.initiator:
        return ""
    when = "at its end" if one.found_after == 1 else f"at {100 * one.found_after:.0f} %"
    return f"{when} + {one.wait_ms} ms" if one.wait_ms else when


def _size(count: int) -> str:
    for unit, factor in (("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def _cut(line: str) -> str:
    width = min(shutil.get_terminal_size().columns, WIDTH)
    return line if len(line) <= width else f"{line[: width - 1]}…"
