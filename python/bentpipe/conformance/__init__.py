"""`bentpipe stacks test`: a stack against the endpoint contract, check by check, in words for its author.

Checks come in the order in which an author meets the questions: does it start, does it greet, does it refuse
what it must refuse, does it move files, does it repeat. A check that needs something that failed before is
skipped. What failed trials leave behind is kept.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bentpipe.conformance import sockets, transfers, virtual_time
from bentpipe.conformance.check import SIZE, SMALLER, Check, hello
from bentpipe.stacks import MODES, Stack
from bentpipe.testbeds import pipe
from bentpipe.workload import www_file

__all__ = ["Check", "checks", "version"]


def version(stack: Stack) -> str | None:
    """The version that the stack gives when it is greeted; None if it cannot be started or is not sane."""
    if stack.missing("virtual-time"):
        return None
    try:
        with tempfile.TemporaryDirectory() as folder, pipe.Program(stack.command("virtual-time")) as program:
            ready = program.ready(hello(stack.roles[0], Path(folder)))
            return str(ready["version"])
    except (OSError, pipe.PipeError, LookupError, TypeError):
        return None


def checks(stack: Stack) -> Iterator[Check]:
    """All checks of a stack, as they are made."""
    yield Check("stack.toml is as the contract says", True)
    for mode in MODES:
        yield _is_there(stack, mode)
    folder = Path(tempfile.mkdtemp(prefix=f"bentpipe-test-{stack.name}-"))
    keep = False
    try:
        for size in (SIZE, *SMALLER):
            www_file(folder / "www", size)
        for check in _of_modes(stack, folder):
            keep = keep or check.folder is not None
            yield check
    finally:
        if not keep:
            shutil.rmtree(folder)


def _of_modes(stack: Stack, folder: Path) -> Iterator[Check]:
    if stack.missing("virtual-time") is None:
        yield from _virtual_time(stack, folder)
    if stack.missing("sockets") is None:
        yield from sockets.checks(stack, folder)


def _virtual_time(stack: Stack, folder: Path) -> Iterator[Check]:
    for role in stack.roles:
        for check in virtual_time.checks(stack, role, folder):
            yield check
            if check.name == virtual_time.PLAIN.format(role=role):
                yield Check("virtual-time: everything else", None, "a plain transfer is refused")
                return
    yield from transfers.checks(stack, folder)


def _is_there(stack: Stack, mode: str) -> Check:
    name, file = f"{mode}: the program is there", stack.folder / "stack.toml"
    if mode not in stack.commands:
        return Check(name, None, f"[commands] of {file} does not offer this mode")
    build = f"`bentpipe stacks build {stack.name}`, or " if stack.build is not None else ""
    why = stack.missing(mode)
    return Check(name, why is None, why or "", f"{build}correct [commands] in {file}")
