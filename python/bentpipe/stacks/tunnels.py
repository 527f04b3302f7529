"""The programs that carry tunnels: the folders below `tunnels/` with a `tunnel.toml`.

Some are built, as stacks are, others are those of the distribution. How their ends are configured is known to
the testbed (`crates/emulator/src/trial/tunnel`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

import msgspec

from bentpipe import paths, strict
from bentpipe.errors import BentpipeError
from bentpipe.stacks.build_table import BuildTable, build_of
from bentpipe.stacks.installable import Installable

DEFAULT_KIND = "wireguard"
PLACES = ("gateway", "server")  # where a tunnel from the client can end
MTUS = range(1280, 1501)  # what IPv6 needs, and what Ethernet carries
DEVICE = Path("/dev/net/tun")
_SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin"  # not on the PATH of ordinary users


class TunnelFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a tunnel.toml."""

    name: str
    title: str
    home: str
    kinds: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    mtu: int
    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    version: tuple[str, ...]
    package: str = ""
    at_least: str = ""
    build: BuildTable | None = None


@dataclass(frozen=True, kw_only=True)
class TunnelProgram(Installable):
    """A program that carries tunnels."""

    FILE = "tunnel.toml"

    title: str
    home: str
    kinds: tuple[str, ...]  # of tunnels
    mtu_bytes: int  # what it has by itself
    words: tuple[str, ...]  # how it is started, with placeholders
    version_words: tuple[str, ...]  # behind these: it prints its version
    package: str  # of the distribution, that has it
    at_least: str  # the oldest version that knows its options; empty if any does

    def programs(self) -> list[str]:
        return [Path(self.words[0]).name] if self.build else []

    def not_installed(self) -> str | None:
        if self.build is not None:
            return super().not_installed()
        found = self._found()
        if found is None:
            return f"there is no program {self.words[0]}"
        said = _version((found, *self.words[1:], *self.version_words))
        if _numbers(said) < _numbers(self.at_least):
            return f"{said or found} is older than {self.at_least}"
        return None

    @property
    def how_to_install(self) -> str:
        """The command that installs it."""
        if self.build is None:
            return f"install it with: sudo apt install {self.package}"
        return super().how_to_install

    def command(self) -> list[str]:
        """The argument list that starts it. BentpipeError if it is not there."""
        if why := self.not_installed():
            raise BentpipeError(f"the tunnel {self.name} is not installed: {why}", self.how_to_install)
        if self.build is not None:
            return self.fill(self.words)
        return [self._found() or self.words[0], *self.words[1:]]

    @cached_property
    def version(self) -> str:
        """The name and version that it reports. BentpipeError if it is not there."""
        return _version((*self.command(), *self.version_words))

    def version_in(self, place: Path) -> str:
        """The same for one whose {bin} is `place`."""
        return _version((*self.fill(self.words, place), *self.version_words))

    def _found(self) -> str | None:
        return shutil.which(self.words[0], path=f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM}")


def _version(command: tuple[str, ...]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    found = re.match(r"\S+ \S+", done.stdout)
    return found[0] if found else ""


def _numbers(version: str) -> tuple[int, ...]:
    found = re.search(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def load(folder: Path) -> TunnelProgram:
    """The program of `folder`; UsageError if its tunnel.toml is not valid."""
    file = folder / TunnelProgram.FILE
    said = strict.read(file, TunnelFile)
    return TunnelProgram(
        folder=folder.resolve(),
        name=said.name,
        title=said.title,
        home=said.home,
        kinds=said.kinds,
        mtu_bytes=said.mtu,
        words=said.command,
        version_words=said.version,
        package=said.package,
        at_least=said.at_least,
        build=build_of(said.build, file) if said.build else None,
    )


@cache
def discover() -> Mapping[str, TunnelProgram]:
    """All programs by name."""
    folders = sorted(file.parent for file in paths.tunnels().glob(f"*/{TunnelProgram.FILE}"))
    return {one.name: one for one in map(load, folders)}


def kinds() -> dict[str, TunnelProgram]:
    """The kinds of tunnels, with the program of each."""
    return {kind: program for program in discover().values() for kind in program.kinds}


def check_device() -> None:
    """BentpipeError if this user cannot make the devices that tunnels need."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        is_there = DEVICE.exists()
        what = f"{DEVICE} cannot be opened" if is_there else f"there is no {DEVICE}"
        hint = f"run as root, or: sudo chmod 666 {DEVICE}" if is_there else "try: sudo modprobe tun"
        raise BentpipeError(f"tunnels need TUN devices, and {what}", hint)
