"""The catalogue of stacks: the folders with a `stack.toml` (`endpoints/contract/stack-toml.md`).

Folders are looked for in Bentpipe's own `endpoints/`, in `BENTPIPE_STACKS` and in `--stacks`. A later folder
replaces an earlier one of the same name, so that an unreleased build of a known stack can stand in for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from bentpipe import labels, paths, strict
from bentpipe.errors import UsageError, one_of
from bentpipe.stacks.build_table import BuildTable, build_of
from bentpipe.stacks.model import (
    LOGS,
    OF_THE_RUNNER,
    PROTOCOLS,
    Carries,
    Log,
    Mode,
    Protocol,
    Role,
    Stack,
    Variant,
)
from bentpipe.workload import TESTCASES

_OPTION = re.compile(r"[A-Za-z0-9_.-]+")


class StackFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a stack.toml."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9-]+\Z", description="letters, digits and -")]
    title: str = ""
    language: str = ""
    home: str = ""
    roles: Annotated[
        tuple[Role, ...],
        msgspec.Meta(min_length=1, description='one or both of "client", "server"'),
    ]
    testcases: tuple[str, ...]
    deterministic: bool = False
    notes: str = ""
    repeats_except: str = ""
    packages: tuple[str, ...] = ()
    browser: tuple[str, ...] = ()
    alpn: Annotated[
        tuple[Protocol, ...],
        msgspec.Meta(min_length=1, description=f"some of {', '.join(PROTOCOLS)}"),
    ] = PROTOCOLS[:1]
    logs: Annotated[
        tuple[Log, ...],
        msgspec.Meta(description=f"some of {', '.join(LOGS)}, or none"),
    ] = LOGS
    carries: Carries = "udp"
    paths: bool = False
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    processors: Annotated[int, msgspec.Meta(ge=0)] = 0
    options: dict[str, str] = {}
    saves: dict[str, Annotated[int, msgspec.Meta(gt=0)]] = {}
    commands: dict[Mode, tuple[str, ...]] = {}
    interop: tuple[str, ...] = ()
    build: BuildTable | None = None


def load(folder: Path) -> Stack:
    """The stack in `folder`; UsageError if its stack.toml is not valid by the contract."""
    file = folder / "stack.toml"
    said = _of_the_runner(strict.read(file, StackFile), file)
    if not said.testcases or not set(said.testcases) <= set(TESTCASES):
        raise strict.wrong(file, "testcases", list(said.testcases), f"some of {', '.join(TESTCASES)}")
    plain = TESTCASES["transfer"].protocols
    if "virtual-time" in said.commands and not set(plain) & set(said.alpn):
        wanted = f"{' or '.join(plain)} too: all in virtual time are asked for a file"
        raise strict.wrong(file, "alpn", list(said.alpn), wanted)
    if not said.commands or not all(said.commands.values()):
        hint = "give `virtual-time` or `sockets` an argument list, or interop, of the interop runner"
        raise UsageError(f"{file}: commands: no command", hint)
    if said.build is None and any("{bin}" in word for words in said.commands.values() for word in words):
        raise UsageError(f"{file}: commands: {{bin}} is of stacks that are built", "add a table [build]")
    for name in said.options:
        if not _OPTION.fullmatch(name):
            wanted = "an option's name with letters, digits, - _ ."
            raise strict.wrong(file, f"options.{name}", name, wanted)
    for setting in said.saves:
        name, _, value = setting.partition("=")
        if name not in said.options or not value:
            raise strict.wrong(file, f'saves."{setting}"', setting, "an option and its value, as in tls=off")
    given = set(said.__struct_fields__) - {"build", "interop", "title"}
    return Stack(
        folder=folder.resolve(),
        build=build_of(said.build, file) if said.build else None,
        title=said.title or said.name,
        **{field: getattr(said, field) for field in given},
    )


def _of_the_runner(said: StackFile, file: Path) -> StackFile:
    """Its contents, with the commands of a program of the interop runner (`endpoints/contract/guests.md`)."""
    if not said.interop:
        return said
    if said.commands:
        raise UsageError(f"{file}: interop stands in place of [commands]", "leave one of them out")
    sockets = (OF_THE_RUNNER, *said.interop)
    virtual_time = ("{programs}/bentpipe-guest", "{guest}/linux", "--", *sockets)
    commands: dict[Mode, tuple[str, ...]] = {"virtual-time": virtual_time, "sockets": sockets}
    # The runner asks for secrets always, and for qlog without insisting.
    logs: tuple[Log, ...] = LOGS[:1] if said.logs == LOGS else said.logs
    return msgspec.structs.replace(said, commands=commands, carries="ip", logs=logs)


def replacements(known: Mapping[str, Stack]) -> list[str]:
    """A sentence for each of the `known` stacks from elsewhere that replaces one that comes with Bentpipe."""
    own = paths.endpoints().resolve()
    names = {load(folder).name for folder in _with_stack(own)}
    return [
        f"{stack.folder} stands in for the stack {stack.name} of Bentpipe"
        for stack in known.values()
        if stack.name in names and stack.folder.parent != own
    ]


def discover(extra: Iterable[Path] = ()) -> dict[str, Stack]:
    """All stacks by name, in order of name."""
    named = [Path(entry) for entry in os.environ.get("BENTPIPE_STACKS", "").split(":") if entry]
    found: dict[str, Stack] = {}
    for place in [None, *named, *extra]:
        own: dict[str, Stack] = {}
        for folder in _with_stack(paths.endpoints()) if place is None else _folders(place):
            stack = load(folder)
            if stack.name in own:
                raise UsageError(
                    f'{folder / "stack.toml"}: name: "{stack.name}" is taken by {own[stack.name].folder}',
                    "give one of them another name",
                )
            own[stack.name] = stack
        found |= own
    return dict(sorted(found.items()))


def stacks_in(place: Path) -> list[Stack]:
    """The stacks in a folder of stacks, or the one whose own folder it is. UsageError if there is none."""
    return [load(folder) for folder in _folders(place)]


def _folders(place: Path) -> list[Path]:
    if (place / "stack.toml").is_file():
        return [place]
    if not place.is_dir():
        raise UsageError(f"{place}: there is no such folder of stacks", "see --stacks and BENTPIPE_STACKS")
    folders = _with_stack(place)
    if not folders:
        raise UsageError(f"{place}: no stack.toml in it or one level below", "see endpoints/CONTRACT.md")
    return folders


def _with_stack(place: Path) -> list[Path]:
    return sorted(file.parent for file in place.glob("*/stack.toml"))


def find(name: str, known: Mapping[str, Stack]) -> Stack:
    """The stack called `name`."""
    if name not in known:
        raise UsageError(f'unknown stack "{name}"', one_of(name, known, "stacks"))
    return known[name]


def variant(label: str, known: Mapping[str, Stack]) -> Variant:
    """The variant that `label` names; UsageError for an unknown stack or option."""
    named = labels.variant(label)
    name, stack = named.stack, find(named.stack, known)
    options: dict[str, str] = {}
    for setting in named.settings:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value:
            raise UsageError(f'{label}: "{setting}" is no option', f"write {name}:option=value:option=value")
        if re.search(r"\s", value):
            raise UsageError(f'{label}: the value "{value}" contains white space', "options are single words")
        if key not in stack.options:
            raise UsageError(
                f'{label}: {name} has no option "{key}"', one_of(key, stack.options, f"options of {name}")
            )
        if key in options:
            raise UsageError(f'{label}: the option "{key}" is given twice', "give it once")
        options[key] = value
    return Variant(label, stack, options)
