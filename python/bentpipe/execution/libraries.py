"""The shared libraries of a program that was brought, and whether this machine has them, as its loader sees
it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

_ELF = b"\x7fELF"
_ABSENT = "not found"
_STATIC = re.compile("not a (valid )?dynamic")  # glibc's ldd, and musl's
_OF_VERSION = re.compile(r"(\S+): version \S+ not found")
_LIBRARY = re.compile(r"\s*(\S+) => not found")


def lack(program: Path, brought: Collection[str]) -> str | None:
    """The libraries, or versions of their symbols, that a program needs and that are missing here, in the
    words of `ldd`; None also where that is not known. `brought` are the names of files that came with the
    program: some bring their loader and libraries along, where `ldd` does not look.
    """
    ldd = shutil.which("ldd")
    with program.open("rb") as file:
        if ldd is None or file.read(len(_ELF)) != _ELF:
            return None
    environment = {**os.environ, "LC_ALL": "C"}
    said = subprocess.run(
        [ldd, program], capture_output=True, text=True, errors="replace", check=False, env=environment
    )
    lines = [line.strip() for line in f"{said.stdout}\n{said.stderr}".splitlines() if line.strip()]
    absent = [line for line in lines if _ABSENT in line]
    if absent:
        return next((line for line in absent if _library(line) not in brought), None)
    if said.returncode and not any(map(_STATIC.search, lines)):
        return f"what ldd fails on with {said.returncode}{f': {lines[-1]}' if lines else ''}"
    return None


def _library(line: str) -> str:
    """The name of the library that a line of `ldd` is about; empty if it does not say."""
    match = _LIBRARY.match(line) or _OF_VERSION.search(line)
    return Path(match[1]).name if match else ""
