"""Building stacks: the `[build]` of each `stack.toml`. A stack whose tools are missing or too old is left out
and said so.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

from bentpipe import paths
from bentpipe.stacks import Need, Stack

_INSTALL = {
    "cargo": "install it with: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh",
    "cc": "install it with: sudo apt install build-essential",
    "cmake": "install it with: sudo apt install cmake",
    "go": "get it from https://go.dev/dl",
    "java": "install it with: sudo apt install default-jdk",
    "mvn": "install it with: sudo apt install maven",
    "npm": "install it with: sudo apt install npm",
}
_NAMES = {"cargo": "Rust", "go": "Go"}  # what has the version that people look for


@dataclass(frozen=True)
class Built:
    """What became of a stack's build: `left_out` and `failed` are None or say why."""

    stack: str
    left_out: str | None = None
    failed: str | None = None


def build(stack: Stack) -> Built:
    """Build one stack; its command's output goes to the terminal."""
    if stack.build is None:
        return Built(stack.name)
    left_out = what_is_missing(stack)
    if left_out is not None:
        return Built(stack.name, left_out=left_out)
    paths.bin_folder().mkdir(parents=True, exist_ok=True)
    command = stack.fill(stack.build.command)
    try:
        done = subprocess.run(command, cwd=stack.folder, check=False)
    except OSError as error:
        return Built(stack.name, failed=f"{command[0]} cannot be started: {error.strerror}")
    return Built(stack.name, failed=f"{command[0]} ended with {done.returncode}" if done.returncode else None)


def what_is_missing(stack: Stack) -> str | None:
    """The tools that the stack's build lacks here, and how to get them; None if it lacks none."""
    needs = stack.build.needs if stack.build is not None else ()
    missing = [why for need in needs if (why := _missing(need, stack)) is not None]
    return "; ".join(f"{stack.name} needs {why}" for why in missing) or None


def _missing(need: Need, stack: Stack) -> str | None:
    """What is missing and how to get it, if `need` is not met."""
    wanted = need.program
    if need.version:
        wanted = f"{_NAMES.get(need.program, need.program)} {_dotted(need.version)} or newer"
    how = _INSTALL.get(need.program, f"install {need.program}")
    if shutil.which(need.program) is None:
        return f"{wanted}; {how}"
    if not need.version:
        return None
    found = _version(need.program, stack)
    if found is None:
        return f"{wanted}, and {need.program} does not say which it is; {how}"
    return None if found >= need.version else f"{wanted}, and {need.program} is {_dotted(found)}; {how}"


def _version(program: str, stack: Stack) -> tuple[int, ...] | None:
    """The version of `program` in the stack's folder, where a file may choose it: (1, 88, 0); None if it says
    none.
    """
    asked = [program, "version" if program == "go" else "--version"]
    try:
        done = subprocess.run(
            asked, cwd=stack.folder, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError:
        return None
    found = re.search(r"\d+(?:\.\d+)+", done.stdout)
    return tuple(int(part) for part in found[0].split(".")) if found and done.returncode == 0 else None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
