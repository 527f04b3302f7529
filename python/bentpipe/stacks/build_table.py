"""`[build]` of a stack.toml, as it is read (`endpoints/contract/stack-toml.md`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import msgspec

from bentpipe import strict
from bentpipe.stacks.installable import Build, Need

_NEED = re.compile(r"([A-Za-z0-9_.+-]+)(?:\s*>=\s*(\d+(?:\.\d+)*))?")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?) ?(MiB|GiB)")
_MIB = {"MiB": 1, "GiB": 1024}


class BuildTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of `[build]` in a stack.toml."""

    needs: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    command: Annotated[
        tuple[str, ...], msgspec.Meta(min_length=1, description='an argument list: ["cargo", "build"]')
    ]
    inputs: tuple[str, ...] = ()
    memory: Annotated[
        str,
        msgspec.Meta(pattern=rf"^{_MEMORY.pattern}\Z", description='what the build takes at most: "2 GiB"'),
    ] = "1 GiB"
    target: str = ""


def build_of(said: BuildTable, file: Path) -> Build:
    """The `[build]` of `file`; UsageError if it is not valid."""
    if any("{bin}" in place or not place.startswith(("{root}", "{folder}")) for place in said.inputs):
        wanted = 'files and folders: ["{root}/crates/endpoint"]'
        if any(Path(place).is_absolute() for place in said.inputs):
            wanted = 'it from {root} or {folder}, since other machines lack that path: ["{folder}/../mylib"]'
        raise strict.wrong(file, "build.inputs", list(said.inputs), wanted)
    memory = _MEMORY.fullmatch(said.memory)
    assert memory is not None, said.memory
    return Build(
        needs=tuple(_need(one, file, "needs", "program", "cargo >= 1.88") for one in said.needs),
        libraries=tuple(_need(one, file, "libraries", "library", "openssl >= 3") for one in said.libraries),
        command=said.command,
        inputs=said.inputs,
        memory_mib=round(float(memory[1]) * _MIB[memory[2]]),
        target=said.target,
    )


def _need(text: str, file: Path, key: str, what: str, example: str) -> Need:
    found = _NEED.fullmatch(text)
    if found is None:
        wanted = f'a {what}, with its oldest version if need be: "{example}"'
        raise strict.wrong(file, f"build.{key}", text, wanted)
    return Need(found[1], tuple(int(part) for part in found[2].split(".")) if found[2] else ())
