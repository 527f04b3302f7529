"""One check of a stack, and what all checks share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe import stacks
from bentpipe.stacks import Stack
from bentpipe.testbeds import loopback, pipe

SIZE = 100_000  # bytes of the file that is moved
PARTNERS = ("quinn", "noq", "aioquic")  # for stacks with one role only
UNKNOWN = "bentpipe-unknown"


@dataclass(frozen=True)
class Check:
    """One check: passed, failed, or skipped (None)."""

    name: str
    passed: bool | None
    detail: str = ""
    hint: str = ""

    def to_mapping(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


class Wrong(Exception):
    """What a check found, in words."""


def attempt(name: str, body: Callable[[], None], hint: str) -> Check:
    try:
        body()
    except (Wrong, pipe.PipeError, loopback.LoopbackError, OSError) as error:
        return Check(name, False, str(error), hint)
    return Check(name, True)


def partner_of(stack: Stack) -> Stack | None:
    """The stack itself if it has both roles, else one that comes with Bentpipe and is built."""
    if set(stack.roles) == set(stacks.ROLES):
        return stack
    known = stacks.discover()
    ready = (known[name] for name in PARTNERS if name in known and not known[name].missing("virtual-time"))
    return next(ready, None)


def hello(role: str, folder: Path) -> dict[str, Any]:
    for name in ("www", "downloads"):
        (folder / name).mkdir(exist_ok=True)
    return pipe.hello(role, "transfer", {}, folder)
