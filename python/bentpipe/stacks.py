"""Stacks: the folders with a `stack.toml` (`endpoints/CONTRACT.md`, section 1), and variants of them.

Folders are looked for in Bentpipe's own `endpoints/`, in `BENTPIPE_STACKS` and in `--stacks`. A later folder
replaces an earlier one of the same name, so that an unreleased build of a known stack can stand in for it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe import inputs, installed, paths, strict
from bentpipe.errors import UsageError, one_of
from bentpipe.workload import TESTCASES

ROLES = ("client", "server")
MODES = ("virtual-time", "sockets")
PROTOCOLS = ("hq-interop", "h3")  # of applications, by their ALPN; what comes first is preferred
LOGS = ("keylog", "qlog")
_NEED = re.compile(r"([A-Za-z0-9_.+-]+)(?:\s*>=\s*(\d+(?:\.\d+)*))?")
_NAME = re.compile(r"[A-Za-z0-9-]+")
_PLACE = re.compile(r"\{(bin|python|folder|root|work)\}")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?) ?(MiB|GiB)")
_MIB = {"MiB": 1, "GiB": 1024}


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
    inputs: tuple[str, ...]  # files and folders that it reads beside the stack's folder, with placeholders
    memory_mib: int  # that it takes at most, so that no more builds run side by side than fit
    target: str  # a folder of intermediate files in which one build is at work at a time; empty: its own


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
    repeats_except: str = ""  # when a deterministic one does not repeat all the same
    packages: tuple[str, ...] = ()  # Python packages of Bentpipe's own environment that it runs with
    alpn: tuple[str, ...] = PROTOCOLS[:1]  # application protocols in socket mode, of PROTOCOLS
    logs: tuple[str, ...] = LOGS  # those that it writes when it is asked to
    weight: float = 1.0  # how much of a processor it takes in real time, where most take 1

    def command(self, mode: str) -> list[str]:
        """The argument list that starts the stack in `mode`, placeholders filled in."""
        return self.fill(self.commands[mode])

    def fill(self, arguments: Iterable[str], bin_folder: Path | None = None) -> list[str]:
        """Arguments with `{bin}`, `{python}`, `{folder}`, `{root}` and `{work}` replaced; while the stack is
        built its `bin_folder` is elsewhere.
        """
        places: dict[str, Callable[[], str | Path]] = {
            "{bin}": lambda: bin_folder or self.entry.folder,
            "{python}": lambda: sys.executable,
            "{folder}": lambda: self.folder,
            "{root}": paths.root,
            "{work}": paths.work,
        }
        return [_PLACE.sub(lambda found: str(places[found[0]]()), argument) for argument in arguments]

    @cached_property
    def entry(self) -> installed.Entry:
        """Where the stack is installed, made of the sources that were there when this was first asked."""
        if self.build is None:
            raise UsageError(f"{self._file}: {{bin}} is of stacks that are built", "add a table [build]")
        further = [(raw, Path(*self.fill([raw]))) for raw in self.build.inputs]
        words = [*self.build.command, "--"]
        if any("{python}" in argument for argument in self.build.command):
            words.append(platform.python_version())
        try:
            return installed.Entry(self.name, inputs.sha256(self.folder, further, words))
        except OSError as error:
            why = f"{error.filename} cannot be read: {error.strerror}"
            raise UsageError(f"{self._file}: the sources of {self.name}: {why}", "see `inputs`") from error

    def not_installed(self) -> str | None:
        """Why the stack is not installed, in words; None if it is, or needs no installation."""
        if self.build is not None:
            try:
                return self.entry.why_not()
            except UsageError as error:
                return str(error)
        absent = [name for name, version in installed.packages_of(self.packages).items() if version is None]
        return f"the Python package {absent[0]} is missing" if absent else None

    def missing(self, mode: str) -> str | None:
        """Why the stack cannot be started in `mode`, in words; None if it can."""
        if mode not in self.commands:
            return f"{self.name} offers no mode {mode}"
        why = self.not_installed()
        if why:
            return f"{self.name} is not installed: {why}"
        for position, (raw, argument) in enumerate(zip(self.commands[mode], self.command(mode), strict=True)):
            if position == 0 and shutil.which(argument) is None:
                return f"{self.name} cannot be started: there is no program {argument}"
            if _PLACE.match(raw) and not Path(argument).exists():
                return f"{self.name} is not complete: there is no {argument}"
        return None

    @property
    def how_to_install(self) -> str:
        """What to do about a stack that cannot be started."""
        if self.build is not None:
            return f"install it with `bentpipe stacks install {self.name}`"
        return paths.repair() if self.not_installed() else f"correct [commands] in {self._file}"

    @property
    def _file(self) -> Path:
        return self.folder / "stack.toml"


@dataclass(frozen=True)
class Variant:
    """A stack and the options that it is started with, written `quinn:cc=cubic:iw=100`."""

    label: str
    stack: Stack
    options: Mapping[str, str]

    def endpoint(self, mode: str, version: str | None = None) -> dict[str, object]:
        """What a job says about an end that is started in `mode`, and is of a version that is known."""
        return {
            "name": self.label,
            "command": self.stack.command(mode),
            "options": dict(self.options),
            "version": version,
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
        "repeats_except",
        "options",
        "commands",
        "build",
        "packages",
        "alpn",
        "logs",
        "weight",
    )
    options, commands, build = table.table("options"), table.table("commands"), table.table("build")
    commands.allow(*MODES)
    build.allow("needs", "libraries", "command", "inputs", "memory", "target")
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
        repeats_except=table.text("repeats_except", ""),
        packages=tuple(table.texts("packages", [])),
        alpn=tuple(table.texts("alpn", ["hq-interop"])),
        logs=tuple(table.texts("logs", list(LOGS))),
        weight=table.number("weight", 1.0),
    )
    if not _NAME.fullmatch(stack.name):
        raise table.wrong("name", stack.name, "letters, digits and -")
    if not stack.roles or not set(stack.roles) <= set(ROLES):
        raise table.wrong("roles", list(stack.roles), 'one or both of "client", "server"')
    if not stack.testcases or not set(stack.testcases) <= set(TESTCASES):
        raise table.wrong("testcases", list(stack.testcases), f"some of {', '.join(TESTCASES)}")
    if not stack.alpn or not set(stack.alpn) <= set(PROTOCOLS):
        raise table.wrong("alpn", list(stack.alpn), f"some of {', '.join(PROTOCOLS)}")
    if "virtual-time" in stack.commands and "hq-interop" not in stack.alpn:
        raise table.wrong("alpn", list(stack.alpn), "hq-interop too: virtual time has nothing else")
    if not set(stack.logs) <= set(LOGS):
        raise table.wrong("logs", list(stack.logs), f"some of {', '.join(LOGS)}, or none")
    if not stack.commands or not all(stack.commands.values()):
        raise UsageError(
            f"{table.file}: commands: no command", "give `virtual-time` or `sockets` an argument list"
        )
    if stack.build is None and any("{bin}" in word for words in stack.commands.values() for word in words):
        raise UsageError(
            f"{table.file}: commands: {{bin}} is of stacks that are built", "add a table [build]"
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
    further = tuple(table.texts("inputs", []))
    if any("{bin}" in place or not place.startswith(("{root}", "{folder}")) for place in further):
        raise table.wrong("inputs", list(further), 'files and folders: ["{root}/crates/endpoint"]')
    text = table.text("memory", "1 GiB")
    memory = _MEMORY.fullmatch(text)
    if memory is None:
        raise table.wrong("memory", text, 'what the build takes at most: "2 GiB"')
    memory_mib = round(float(memory[1]) * _MIB[memory[2]])
    return Build(needs, libraries, command, further, memory_mib, table.text("target", ""))


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
