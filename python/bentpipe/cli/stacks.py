"""`bentpipe stacks`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bentpipe import contract as conformance
from bentpipe.cli import completing
from bentpipe.cli import install as installing
from bentpipe.cli.layout import folded
from bentpipe.errors import UsageError, one_of
from bentpipe.stacks import catalogue, guest, middleboxes, state
from bentpipe.stacks.middleboxes import Middlebox
from bentpipe.stacks.model import Stack
from bentpipe.stacks.state import StackStatus
from bentpipe.testbed import TESTBEDS
from bentpipe.workload import TESTCASES

_SHORT = ("roles", "repeats", "installed")  # columns that are as wide as their headings
_WIDEST = 10  # characters: longer words than this are broken where space is short
_LETTERS = {case: case[0].upper() for case in TESTCASES} | {
    "live": "V",
    "page-resumption": "r",
    "page-zerortt": "z",
}  # L is longrtt
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
      bentpipe stacks install --all
      bentpipe stacks test quinn
      bentpipe stacks test my-quic --stacks ~/my-quic
    """
    context.obj = catalogue.discover(extra)
    if context.invoked_subcommand is not None:
        return
    known: dict[str, Stack] = context.obj
    note_replaced(known)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(state.of, known.values()))
    if as_json:
        click.echo(json.dumps([one.to_mapping() for one in found], indent=1))
        return
    console = Console(highlight=False)
    console.print(_table(found))
    for line in _legend(found):
        click.echo(folded(line.lstrip(), line[: len(line) - len(line.lstrip())], "  "))


def _table(found: Sequence[StackStatus]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    headings = list(_cells(found[0])) if found else []
    for heading in headings:
        longest = max((len(word) for one in found for word in _cells(one)[heading].split()), default=0)
        least = max(len(heading), min(longest, _WIDEST))
        table.add_column(heading, overflow="fold", min_width=least, no_wrap=heading in _SHORT)
    for one in found:
        table.add_row(*_cells(one).values())
    return table


def _cells(one: StackStatus) -> dict[str, str]:
    """The row of a stack: heading → text, which may be broken between words."""
    stack = one.stack
    return {
        "name": stack.name,
        "version": one.version or "",
        "roles": "both" if len(stack.roles) == 2 else stack.roles[0],
        "cases": _cases(stack.testcases),
        "options": " ".join(stack.options),
        "testbeds": " ".join(one.testbeds),
        "repeats": one.repeats,
        "installed": "yes" if one.why_not is None else "no",
    }


def _cases(testcases: Sequence[str]) -> str:
    """The test cases of a stack, shorter than by name."""
    absent = [case for case in TESTCASES if case not in testcases]
    return "all" if not absent else "".join(_LETTERS[case] for case in testcases)


def _legend(found: Sequence[StackStatus]) -> Iterator[str]:
    yield ""
    if any(_cases(one.stack.testcases) != "all" for one in found):
        yield f"cases: {', '.join(f'{letter} {case}' for case, letter in _LETTERS.items())}."
    yield "testbeds: sim, virtual time; emu, real time."
    yield "repeats: the same seed gives the same packets, in virtual time."
    for one in found:
        if "virtual-time" not in one.stack.commands:
            continue
        if not one.stack.deterministic:
            yield f"{one.stack.name} does not repeat: {one.stack.notes}"
        elif one.stack.repeats_except:
            yield f"{one.stack.name} repeats, except {one.stack.repeats_except}"
    for one in found:
        if one.no_guest is not None:
            yield f"{one.stack.name} has no virtual time here: {one.no_guest}"
    reasons: dict[str, list[str]] = {}
    for one in found:
        if one.why_not is not None:
            reasons.setdefault(one.why_not, []).append(one.stack.name)
    yield from (f"not installed: {', '.join(names)}: {why}" for why, names in reasons.items())
    if any(one.why_not is not None and one.stack.build is not None for one in found):
        yield "Install them with: bentpipe stacks install NAME…"
    yield "More of one: bentpipe stacks show NAME"
    yield ""
    yield "Middleboxes, for --treatment:"
    for box in middleboxes.discover().values():
        names = [f"vpn=server:kind={kind}" for kind in box.kinds] or [box.name]
        yield f"  {', '.join(names)}: {box.title}{_state_of(box)}"


def _state_of(middlebox: Middlebox) -> str:
    if why := middlebox.not_installed():
        return f"; not installed: {why}; {middlebox.how_to_install}"
    return f" ({middlebox.version})" if middlebox.is_tunnel else ""


def note_replaced(known: dict[str, Stack]) -> None:
    """Say so if a folder of the user's stands in for a stack of the project."""
    for replacement in catalogue.replacements(known):
        click.echo(f"note: {replacement}", err=True)


@stacks.command()
@click.argument("name", shell_complete=completing.stack)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@_extra
@click.pass_obj
def show(known: dict[str, Stack], name: str, as_json: bool, extra: tuple[Path, ...]) -> None:
    """Show everything that is known of a stack, or of a middlebox.

    \b
    Examples:
      bentpipe stacks show quic-go
      bentpipe stacks show quic-pep
    """
    if name in (boxes := middleboxes.discover()):
        _show_middlebox(boxes[name], as_json)
        return
    stack = _find(name, known, extra)
    one = state.of(stack)
    if as_json:
        click.echo(json.dumps(one.to_mapping(), indent=1))
        return
    click.echo(folded(f"{stack.name}: {stack.title} ({stack.language}), {stack.home}", further="  "))
    _show_rows(
        ("version", one.version or ""),
        ("roles", ", ".join(stack.roles)),
        ("test cases", ", ".join(stack.testcases)),
        ("testbeds", ", ".join(one.testbeds)),
        ("protocols", ", ".join(stack.alpn)),
        ("repeats", f"yes, except {stack.repeats_except}" if one.repeats == "mostly" else one.repeats),
        ("installed", "yes" if one.why_not is None else f"no: {one.why_not}"),
        ("made with", ", ".join(f"{name} {version}" for name, version in one.made_with.items())),
        ("folder", str(stack.folder)),
        ("notes", stack.notes),
    )
    if stack.options:
        example = ":".join([stack.name, *(f"{option}=…" for option in list(stack.options)[:2])])
        click.echo(f"options, as in {example}")
    else:
        click.echo("options: none")
    _show_rows(*stack.options.items())
    for mode in stack.commands:
        click.echo(folded(f"{mode}: {stack.missing(mode) or ' '.join(stack.command(mode))}", further="  "))


def _show_middlebox(one: Middlebox, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(one.to_mapping(), indent=1))
        return
    click.echo(folded(f"{one.name}: {one.title}{_state_of(one)}", further="  "))
    _show_rows(
        ("ends", one.ends),
        ("relays", one.relays),
        ("places", ", ".join(one.places)),
        ("kinds", ", ".join(one.kinds)),
        (
            "testbeds",
            ", ".join(
                name for name, it in TESTBEDS.items() if it.mode in one.commands and not it.is_elsewhere
            ),
        ),
        ("repeats", ("yes" if one.deterministic else "no") if "virtual-time" in one.commands else ""),
        ("home", one.home),
        ("folder", str(one.folder)),
        ("notes", one.notes),
    )
    example = f"vpn=server:kind={next(iter(one.kinds))}" if one.is_tunnel else f"{one.name}={one.example}"
    click.echo(f"options, as in --treatment {example}" if one.options else "options: none")
    _show_rows(*one.options.items())


def _show_rows(*rows: tuple[str, str]) -> None:
    for heading, text in rows:
        if text:
            click.echo(folded(text, f"  {heading:<11} ", " " * 14))


@stacks.command()
@click.argument("name", required=False, shell_complete=completing.stack)
@click.option("--all", "every", is_flag=True, help="Test all stacks, except those whose tools are missing.")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
@_extra
@click.pass_obj
def test(
    known: dict[str, Stack], name: str | None, every: bool, as_json: bool, extra: tuple[Path, ...]
) -> int:
    """Test a stack against the endpoint contract (endpoints/CONTRACT.md), and say what is wrong.

    Without NAME: all stacks in the folders of --stacks. Those that are not installed are built
    first. In virtual time messages go through shared memory where a stack uses it, and once more
    through pipes alone.

    \b
    Examples:
      bentpipe stacks test quinn
      bentpipe stacks test my-quic --stacks ~/my-quic
      bentpipe stacks test --stacks ~/my-quic
      bentpipe stacks test --all
    """
    if name is not None and every:
        raise UsageError("a stack is named, and --all", "give one of them")
    if name is not None:
        stack = _find(name, known, extra)
        found = _tested(stack, as_json)
        if as_json:
            click.echo(json.dumps(found, indent=1))
        return 0 if found["passed"] else 1
    if not extra and not every:
        raise UsageError("name a stack, give its folder, or give --all", one_of("", known, "stacks"))
    wanted = [stack for place in extra for stack in catalogue.stacks_in(place)]
    wanted = list(_with(known, extra).values()) if every else wanted
    absent = [one for one in (*wanted, *_guest_of(wanted)) if one.not_installed()]
    console = Console(stderr=as_json, highlight=False, soft_wrap=True)
    built = installing.build(absent, False, console)
    absent_still = {one.stack: why for one in built if (why := one.failed or one.left_out)}
    left_out = {one.stack for one in built if every and one.left_out}
    results = []
    for stack in wanted:
        if not as_json:
            click.echo(f"{stack.name}:")
        why = absent_still.get(stack.name)
        if why is None:
            results.append(_tested(stack, as_json))
        else:
            results.append(_not_built(stack, why, as_json, stack.name in left_out))
    if as_json:
        click.echo(json.dumps(results, indent=1))
    return 0 if all(one["passed"] is not False for one in results) else 1


def _not_built(stack: Stack, why: str, quiet: bool, left_out: bool) -> dict[str, object]:
    """The result of a stack that could not be built, or whose tools are missing."""
    if not quiet:
        click.echo(f"not tested, since it was not built: {why}")
    return {"stack": stack.name, "passed": None if left_out else False, "why": why, "checks": []}


def _tested(stack: Stack, quiet: bool) -> dict[str, object]:
    """The results of a stack's checks, in the form of JSON; unless `quiet`, each is printed at once."""
    results = []
    for check in conformance.checks(stack):
        results.append(check)
        if not quiet:
            _print(check)
    failed = sum(check.passed is False for check in results)
    skipped = sum(check.passed is None for check in results)
    if not quiet:
        click.echo(f"{len(results)} checks, {failed} failed, {skipped} skipped")
    checks = [check.to_mapping() for check in results]
    return {"stack": stack.name, "passed": not failed, "checks": checks}


@stacks.command()
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=completing.stack)
@click.option(
    "--all", "every", is_flag=True, help="Install all stacks, except those whose tools are missing."
)
@click.option("--force", is_flag=True, help="Rebuild what is installed already.")
@click.option("--json", "as_json", is_flag=True, help="Print the result of each as JSON.")
@_extra
@click.pass_obj
def install(
    known: dict[str, Stack],
    names: tuple[str, ...],
    every: bool,
    force: bool,
    as_json: bool,
    extra: tuple[Path, ...],
) -> int:
    """Build stacks, and middleboxes such as wireguard, from their sources and the public registries, into a
    cache that all checkouts and packages share.

    Those that are installed from the same sources already are left alone. The cache is BENTPIPE_CACHE, or
    else bentpipe in XDG_CACHE_HOME or ~/.cache.

    \b
    Examples:
      bentpipe stacks install quinn quic-go
      bentpipe stacks install --all
    """
    known, boxes = _with(known, extra), middleboxes.discover()
    if bool(names) == every:
        raise UsageError("name the stacks to install, or give --all", one_of("", known, "stacks"))
    given = dict.fromkeys(names)
    for name in given:
        if name in boxes and boxes[name].build is None:
            raise UsageError(f"{name} is not built here", boxes[name].how_to_install)
    named = [catalogue.find(name, known) for name in given if name not in boxes]
    wanted = named or ([] if names else list(known.values()))
    programs = [one for one in boxes.values() if one.build is not None and (every or one.name in given)]
    note_replaced({stack.name: stack for stack in wanted})
    return installing.install([*wanted, *_guest_of(wanted), *programs], force, as_json, strict=names)


@stacks.command()
@_extra
@click.pass_obj
def prune(known: dict[str, Stack], extra: tuple[Path, ...]) -> int:
    """Remove from the cache the stacks whose sources differ from those that are here.

    Other checkouts and packages may use them; they can install them again. Intermediate files, which make
    the next build quicker, stay: in a checkout below target, else in the cache's folder `work`.
    """
    return installing.prune([*_with(known, extra).values(), guest.load(), *middleboxes.discover().values()])


def _guest_of(wanted: Sequence[Stack]) -> list[guest.Guest]:
    """The kernel that some of them live in, if any does."""
    return [guest.load()] if any(stack.lives_in_guest("virtual-time") for stack in wanted) else []


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
