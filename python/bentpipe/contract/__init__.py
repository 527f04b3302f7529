"""`bentpipe stacks test`: checks of a stack against the endpoint contract, in words for its author.

Checks are in the order in which an author meets the questions: does it start, does it greet, does it refuse
what it must refuse, does it move files, does it repeat. A check that needs something that failed before is
skipped. What failed trials leave behind is kept.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bentpipe.contract import sockets, testcases, transfers, virtual_time
from bentpipe.contract.check import SIZE, SMALLER, Check
from bentpipe.stacks.model import MODES, Stack
from bentpipe.workload import www_file

__all__ = ["Check", "checks"]


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
    for check in transfers.checks(stack, folder):
        yield check
        if check.name.startswith(transfers.PLAIN) and not check.passed:
            return
    yield from testcases.checks(stack, folder)


def _is_there(stack: Stack, mode: str) -> Check:
    name, file = f"{mode}: the program is there", stack.folder / "stack.toml"
    if mode not in stack.commands:
        return Check(name, None, f"[commands] of {file} does not offer this mode")
    why = stack.missing(mode)
    return Check(name, why is None, why or "", stack.how_to_install)
