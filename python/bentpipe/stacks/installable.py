"""Installable things: a folder of sources, and the build that makes programs of it in the cache."""

from __future__ import annotations

import dataclasses
import platform
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

from bentpipe import paths
from bentpipe.errors import UsageError
from bentpipe.stacks import inputs, installed

PLACE = re.compile(r"\{(bin|python|folder|root|work|programs|guest)\}")


@dataclass(frozen=True)
class Need:
    """A program on the PATH or a library, written `cargo`, or `cargo >= 1.88` if it must not be older."""

    name: str
    version: tuple[int, ...] = ()  # the oldest that will do; empty: any


@dataclass(frozen=True)
class Build:
    """The way in which something is built."""

    needs: tuple[Need, ...]  # programs
    libraries: tuple[Need, ...]  # as pkg-config names them
    command: tuple[str, ...]  # runs in its folder
    inputs: tuple[str, ...]  # files and folders that it reads beside that folder, with placeholders
    memory_mib: int  # that it takes at most, so that no more builds run side by side than fit
    target: str  # a folder of intermediate files in which one build is at work at a time; empty: its own


@dataclass(frozen=True, kw_only=True)
class Installable:
    """Something that is installed into the cache, if it is built: a stack, or the kernel of guests."""

    FILE: ClassVar[str]  # in its folder, that says what it is

    folder: Path
    name: str
    build: Build | None

    def fill(self, arguments: Iterable[str], bin_folder: Path | None = None) -> list[str]:
        """Arguments with their placeholders replaced; during its build `bin_folder` is elsewhere."""
        places = self._places() | {"{bin}": lambda: bin_folder or self.entry.folder}
        return [PLACE.sub(lambda found: str(places[found[0]]()), argument) for argument in arguments]

    @property
    def how_to_install(self) -> str:
        """The hint for when it is not installed."""
        return f"install it with `bentpipe stacks install {self.name}`"

    def _places(self) -> dict[str, Callable[[], str | Path]]:
        return {
            "{python}": lambda: sys.executable,
            "{folder}": lambda: self.folder,
            "{root}": paths.root,
            "{work}": paths.work,
            "{programs}": paths.bin_folder,
        }

    @cached_property
    def entry(self) -> installed.CacheEntry:
        """Its place in the cache, for the sources that were there when this was first asked."""
        if self.build is None:
            raise UsageError(f"{self.file}: {{bin}} is of stacks that are built", "add a table [build]")
        further = [(raw, Path(*self.fill([raw]))) for raw in self.build.inputs]
        words = [*self.build.command, "--"]
        if any("{python}" in argument for argument in self.build.command):
            words.append(platform.python_version())
        try:
            return installed.CacheEntry(self.name, inputs.sha256(self.folder, further, words))
        except OSError as error:
            why = f"{error.filename} cannot be read: {error.strerror}"
            raise UsageError(f"{self.file}: the sources of {self.name}: {why}", "see `inputs`") from error

    def anew(self) -> Self:
        """A copy of it that reads its sources again."""
        return dataclasses.replace(self)

    def programs(self) -> list[str]:
        """The files of its folder in the cache that are started."""
        raise NotImplementedError

    @staticmethod
    def built_programs(commands: Iterable[Iterable[str]]) -> list[str]:
        """The files below {bin} that commands name."""
        words = {word for command in commands for word in command}
        return sorted(word.removeprefix("{bin}/") for word in words if word.startswith("{bin}/"))

    def missing_source(self) -> str | None:
        """The missing requirement besides tools and libraries, and how to get it; None if nothing
        is.
        """
        return None

    def not_installed(self) -> str | None:
        """The reason why it is not installed, in words; None if it is."""
        try:
            return self.entry.why_not()
        except UsageError as error:
            return str(error)

    @property
    def file(self) -> Path:
        """The TOML file that describes it."""
        return self.folder / self.FILE
