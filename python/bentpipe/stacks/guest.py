"""The kernel of guests (`guest/`), in which programs that know sockets and a clock run in virtual time."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from bentpipe import paths, strict
from bentpipe.stacks.build_table import BuildTable, build_of
from bentpipe.stacks.installable import Installable

SOURCE = "BENTPIPE_LINUX_SOURCE"  # names another source of the kernel


class GuestFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of `guest.toml`."""

    name: str
    source: str
    package: str
    build: BuildTable


@dataclass(frozen=True, kw_only=True)
class Guest(Installable):
    """The kernel of guests."""

    FILE = "guest.toml"

    source: Path  # of the kernel, a folder or a tar file
    package: str  # of the distribution, that has it

    def programs(self) -> list[str]:
        return ["linux"]

    def missing_source(self) -> str | None:
        if self.source.exists():
            return None
        how = f"install it with: sudo apt install {self.package}"
        return f"the source of Linux 6.12, and there is no {self.source}; {how}, or name a copy with {SOURCE}"


@cache
def load() -> Guest:
    """The guest that Bentpipe comes with."""
    folder = paths.root() / "guest"
    file = folder / Guest.FILE
    said = strict.read(file, GuestFile)
    source = Path(os.environ.get(SOURCE) or said.source)
    return Guest(
        folder=folder,
        name=said.name,
        build=build_of(said.build, file),
        source=source,
        package=said.package,
    )


def version(kernel: Path) -> str:
    """The version that a guest's kernel reports."""
    done = subprocess.run([kernel, "--version"], capture_output=True, text=True, check=True)
    return f"Linux {done.stdout.strip()}"
