"""What a stack is: what its `stack.toml` says (`endpoints/CONTRACT.md`, section 1), and variants of it."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from bentpipe import paths
from bentpipe.errors import UsageError
from bentpipe.schema.job import Program
from bentpipe.stacks import inputs, installed

Role = Literal["client", "server"]
Mode = Literal["virtual-time", "sockets"]
Protocol = Literal["hq-interop", "h3", "http/0.9"]
Transport = Literal["quic", "tcp"]
Log = Literal["keylog", "qlog"]
# Application protocols by their ALPN; what comes first is preferred. The last is that of TCP.
PROTOCOLS: tuple[Protocol, ...] = ("hq-interop", "h3", "http/0.9")
TRANSPORTS: dict[Protocol, Transport] = {"hq-interop": "quic", "h3": "quic", "http/0.9": "tcp"}
MODES: tuple[Mode, ...] = get_args(Mode)
ROLES: tuple[Role, ...] = get_args(Role)
LOGS: tuple[Log, ...] = ("keylog", "qlog")
_PLACE = re.compile(r"\{(bin|python|folder|root|work)\}")


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
    transport: Transport = "quic"  # what its protocols are over
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
    def entry(self) -> installed.CacheEntry:
        """Where the stack is installed, made of the sources that were there when this was first asked."""
        if self.build is None:
            raise UsageError(f"{self._file}: {{bin}} is of stacks that are built", "add a table [build]")
        further = [(raw, Path(*self.fill([raw]))) for raw in self.build.inputs]
        words = [*self.build.command, "--"]
        if any("{python}" in argument for argument in self.build.command):
            words.append(platform.python_version())
        try:
            return installed.CacheEntry(self.name, inputs.sha256(self.folder, further, words))
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

    def program(self, mode: str, version: str | None = None) -> Program:
        """What a job says about an end that is started in `mode`, and is of a version that is known."""
        return Program(
            name=self.label,
            command=self.stack.command(mode),
            options=dict(self.options),
            version=version,
        )
