"""Building stacks: the `[build]` of each `stack.toml`. A stack whose tools are missing is left out and said
so.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

from bentpipe import paths
from bentpipe.stacks import Stack

_INSTALL = {
    "cargo": "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh",
    "cc": "sudo apt install build-essential",
    "cmake": "sudo apt install cmake",
    "go": "sudo apt install golang-go (or a newer one from https://go.dev/dl)",
    "java": "sudo apt install default-jdk",
    "mvn": "sudo apt install maven",
    "npm": "sudo apt install npm",
}


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
    missing = [need for need in stack.build.needs if shutil.which(need) is None]
    if missing:
        return Built(stack.name, left_out="; ".join(_needs(stack.name, need) for need in missing))
    paths.bin_folder().mkdir(parents=True, exist_ok=True)
    command = stack.fill(stack.build.command)
    try:
        done = subprocess.run(command, cwd=stack.folder, check=False)
    except OSError as error:
        return Built(stack.name, failed=f"{command[0]} cannot be started: {error.strerror}")
    return Built(stack.name, failed=f"{command[0]} ended with {done.returncode}" if done.returncode else None)


def _needs(stack: str, program: str) -> str:
    install = _INSTALL.get(program)
    how = f"install it with: {install}" if install else f"install {program}"
    return f"{stack} needs {program}; {how}"
