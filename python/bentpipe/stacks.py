"""Stacks: the folders with a `stack.toml` (`endpoints/CONTRACT.md`, section 1), and variants of them.

Folders are looked for in `endpoints/` of the checkout, in `BENTPIPE_STACKS` and in `--stacks`. A later folder
replaces an earlier one of the same name, so that an unreleased build of a known stack can stand in for it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bentpipe import paths, strict
from bentpipe.errors import UsageError, one_of

ROLES = ("client", "server")
MODES = ("virtual-time", "sockets")
_NEED = re.compile(r"([A-Za-z0-9_.+-]+)(?:\s*>=\s*(\d+(?:\.\d+)*))?")
_NAME = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True)
class Need:
    """A program on the PATH or a library, written `cargo`, or `cargo >= 1.88` if it must not be older."""

    name: str
    version: tuple[int, ...] = ()  # the oldest that will do; empty: any


@dataclass(frozen=True)
class Build:
    """How a stack is made."""

    needs: tuple[Need, ...]  # programs
    libraries: tuple[Need, ...]  # as pkg-config names them
    command: tuple[str, ...]  # runs in the stack's folder


@dataclass(frozen=True)
class Stack:
    """What a `stack.toml` says."""

    folder: Path
    name: str
    title: str
    language: str
    home: str
    roles: tuple[str, ...]
    testcases: tuple[str, ...]
    deterministic: bool
    notes: str
    options: Mapping[str, str]  # name → what it means
    commands: Mapping[str, tuple[str, ...]]  # mode → arguments, with placeholders
    build: Build | None

    def command(self, mode: str) -> list[str]:
        """The argument list that starts the stack in `mode`, placeholders filled in."""
        return self.fill(self.commands[mode])

    def fill(self, arguments: Iterable[str]) -> list[str]:
        """Arguments with `{bin}`, `{python}`, `{folder}` and `{root}` replaced."""
        filled = []
        for argument in arguments:
            for name, value in self._places():
                argument = argument.replace(name, value)
            filled.append(argument)
        return filled

    def missing(self, mode: str) -> str | None:
        """Why the stack cannot be started in `mode`, in words; None if it can."""
        if mode not in self.commands:
            return f"{self.name} offers no mode {mode}"
        for position, (raw, argument) in enumerate(zip(self.commands[mode], self.command(mode), strict=True)):
            if position == 0 and shutil.which(argument) is None:
                return f"{self.name} is not built: there is no program {argument}"
            if any(raw.startswith(name) for name, _ in self._places()) and not Path(argument).exists():
                return f"{self.name} is not complete: there is no {argument}"
        return None

    def _places(self) -> list[tuple[str, str]]:
        return [
            ("{bin}", str(paths.bin_folder())),
            ("{python}", sys.executable),
            ("{folder}", str(self.folder)),
            ("{root}", str(paths.root())),
        ]


@dataclass(frozen=True)
class Variant:
    """A stack and the options that it is started with, written `quinn:cc=cubic:iw=100`."""

    label: str
    stack: Stack
    options: Mapping[str, str]

    def endpoint(self) -> dict[str, object]:
        """What a job of `bentpipe-sim trial` says about an end."""
        return {
            "name": self.label,
            "command": self.stack.command("virtual-time"),
            "options": dict(self.options),
        }


def load(folder: Path) -> Stack:
    """The stack in `folder`; UsageError if its stack.toml is not as the contract says."""
    table = strict.read(folder / "stack.toml")
    table.allow(
        "name",
        "title",
        "language",
        "home",
        "roles",
        "testcases",
        "deterministic",
        "notes",
        "options",
        "commands",
        "build",
    )
    options, commands, build = table.table("options"), table.table("commands"), table.table("build")
    commands.allow(*MODES)
    build.allow("needs", "libraries", "command")
    stack = Stack(
        folder=folder.resolve(),
        name=table.text("name"),
        title=table.text("title"),
        language=table.text("language"),
        home=table.text("home"),
        roles=tuple(table.texts("roles")),
        testcases=tuple(table.texts("testcases")),
        deterministic=table.flag("deterministic"),
        notes=table.text("notes", ""),
        options={name: options.text(name) for name in options.values},
        commands={mode: tuple(commands.texts(mode)) for mode in commands.values},
        build=_build(build) if build.values else None,
    )
    if not _NAME.fullmatch(stack.name):
        raise table.wrong("name", stack.name, "letters, digits and -")
    if not stack.roles or not set(stack.roles) <= set(ROLES):
        raise table.wrong("roles", list(stack.roles), 'one or both of "client", "server"')
    if not stack.commands or not all(stack.commands.values()):
        raise UsageError(
            f"{table.file}: commands: no command", "give `virtual-time` or `sockets` an argument list"
        )
    for name in stack.options:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            raise table.wrong(f"options.{name}", name, "an option's name with letters, digits, - _ .")
    return stack


def _build(table: strict.Table) -> Build:
    needs = _needs(table, "needs", 'a program, with its oldest version if need be: "cargo >= 1.88"')
    libraries = _needs(table, "libraries", 'a library, with its oldest version if need be: "openssl >= 3"')
    command = tuple(table.texts("command"))
    if not command:
        raise table.wrong("command", [], 'an argument list: ["cargo", "build"]')
    return Build(needs, libraries, command)


def _needs(table: strict.Table, key: str, wanted: str) -> tuple[Need, ...]:
    needs = []
    for text in table.texts(key, []):
        found = _NEED.fullmatch(text)
        if found is None:
            raise table.wrong(key, text, wanted)
        needs.append(Need(found[1], tuple(int(part) for part in found[2].split(".")) if found[2] else ()))
    return tuple(needs)


def replaced(known: Mapping[str, Stack]) -> list[Stack]:
    """Those of `known` that come from elsewhere and have the name of a stack that comes with Bentpipe."""
    own = paths.endpoints().resolve()
    names = {load(folder).name for folder in _with_stack(own)}
    return [stack for stack in known.values() if stack.name in names and stack.folder.parent != own]


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
    name, *settings = label.split(":")
    stack = find(name, known)
    options: dict[str, str] = {}
    for setting in settings:
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
