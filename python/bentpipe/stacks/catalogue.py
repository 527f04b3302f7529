"""Which stacks there are: the folders with a `stack.toml` (`endpoints/CONTRACT.md`, section 1).

Folders are looked for in Bentpipe's own `endpoints/`, in `BENTPIPE_STACKS` and in `--stacks`. A later folder
replaces an earlier one of the same name, so that an unreleased build of a known stack can stand in for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from bentpipe import labels, paths, strict
from bentpipe.errors import UsageError, one_of
from bentpipe.stacks.model import LOGS, MODES, PROTOCOLS, ROLES, Build, Need, Stack, Variant
from bentpipe.testcases import TESTCASES

_NEED = re.compile(r"([A-Za-z0-9_.+-]+)(?:\s*>=\s*(\d+(?:\.\d+)*))?")
_NAME = re.compile(r"[A-Za-z0-9-]+")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?) ?(MiB|GiB)")
_MIB = {"MiB": 1, "GiB": 1024}


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
