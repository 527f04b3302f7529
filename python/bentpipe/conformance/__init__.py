"""`bentpipe stacks test`: a stack against the endpoint contract, check by check, in words for its author.

Checks come in the order in which an author meets the questions: does it start, does it refuse what it must
refuse, does it greet, does it move a file, does it repeat. A check that needs something that failed before is
skipped.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bentpipe.conformance import sockets, virtual_time
from bentpipe.conformance.check import SIZE, Check, hello
from bentpipe.stacks import Stack
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
    for mode in stack.commands:
        why = stack.missing(mode)
        hint = f"`bentpipe stacks build {stack.name}`, or correct [commands] in {stack.folder / 'stack.toml'}"
        yield Check(f"{mode}: the program is there", why is None, why or "", hint)
    with tempfile.TemporaryDirectory(prefix="bentpipe-") as name:
        folder = Path(name)
        www_file(folder / "www", SIZE)
        www_file(folder / "www", 1000)
        if stack.missing("virtual-time") is None:
            yield from virtual_time.checks(stack, folder)
        if stack.missing("sockets") is None:
            yield from sockets.checks(stack, folder)
