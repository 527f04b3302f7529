"""A check of a stack, and what all checks share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe.stacks import catalogue, loopback, pipe
from bentpipe.stacks.model import ROLES, Stack

SIZE = 100_000  # bytes of the file that is moved
SMALLER = (1000, 30_000)  # of the files that are moved beside it
PARTNERS = ("quinn", "noq", "aioquic", "linux")  # for stacks with one role only
UNKNOWN = "bentpipe-unknown"


@dataclass(frozen=True)
class Check:
    """One check: passed, failed, or skipped (None)."""

    name: str
    passed: bool | None
    detail: str = ""
    hint: str = ""  # shown if it failed
    output: tuple[str, ...] = ()  # the last lines that the program printed
    folder: Path | None = None  # what the trial left behind
    replay: str = ""  # the command that runs the program alone through what it was sent

    def to_mapping(self) -> dict[str, Any]:
        """The check in the form that `--json` prints."""
        values: dict[str, Any] = {"name": self.name, "passed": self.passed, "detail": self.detail}
        if self.passed is False:
            values["hint"] = self.hint
        if self.folder is not None:
            values |= {"output": list(self.output), "folder": str(self.folder), "replay": self.replay}
        return values


class ContractBreach(Exception):
    """A breach of the contract, in words."""


def attempt(name: str, body: Callable[[], None], hint: str) -> Check:
    try:
        body()
    except (ContractBreach, pipe.PipeError, loopback.LoopbackError) as error:
        return Check(name, False, str(error), hint)
    except OSError as error:
        return Check(name, False, f"{error.filename or 'it'}: {error.strerror}", hint)
    return Check(name, True)


def shown(value: object) -> str:
    """A value in JSON, shortened where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"


def partner_of(stack: Stack, mode: str, alpn: str) -> Stack | None:
    """The stack itself if it has both roles, else one of Bentpipe's own that is built and speaks `alpn`."""
    if set(stack.roles) == set(ROLES):
        return stack
    known = catalogue.discover()
    speak = (known[name] for name in PARTNERS if name in known and alpn in known[name].alpn)
    return next((partner for partner in speak if not partner.missing(mode)), None)


def hello(stack: Stack, role: str, folder: Path, testcase: str = "transfer") -> dict[str, Any]:
    for name in ("www", "downloads"):
        (folder / name).mkdir(exist_ok=True)
    return pipe.hello(role, testcase, {}, folder, stack.file_protocol)
