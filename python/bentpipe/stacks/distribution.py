"""Programs that come with packages of the distribution, and what programs say of their version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence

import msgspec

from bentpipe.errors import BentpipeError

_ANSWERS_WITHIN_S = 10
_SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin"  # not on the PATH of ordinary users


class Package(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program of the distribution that a middlebox needs, as `[package]` of its middlebox.toml names it."""

    name: str
    program: str
    at_least: str  # the oldest version that will do
    version: tuple[str, ...] = ("--version",)  # behind the program: it prints its version

    def missing(self) -> str | None:
        """Why it cannot be used, in words; None if it can."""
        found = shutil.which(self.program, path=f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM}")
        if found is None:
            return f"there is no program {self.program}"
        said = version_of((found, *self.version))
        if _numbers(said) < _numbers(self.at_least):
            return f"{said or found} is older than {self.at_least}"
        return None

    @property
    def how_to_install(self) -> str:
        """The command that brings it."""
        return f"install it with: sudo apt install {self.name}"


def version_of(command: Sequence[str]) -> str:
    """The first two words of what a command prints, a name and a version; empty if it prints none.
    BentpipeError if it does not end.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_ANSWERS_WITHIN_S,
        )
    except subprocess.TimeoutExpired as late:
        what = f"{command[0]} did not print its version within {_ANSWERS_WITHIN_S} s"
        raise BentpipeError(what, f"it was started as: {' '.join(command)}") from late
    found = re.match(r"\S+ \S+", done.stdout)
    return found[0] if found else ""


def _numbers(version: str) -> tuple[int, ...]:
    found = re.search(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
