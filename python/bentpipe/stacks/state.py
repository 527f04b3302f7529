"""The state of a stack on this machine: its version, whether it is installed, and what it was built with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bentpipe.stacks import guest, installed, loopback, needs, pipe
from bentpipe.stacks.model import Stack
from bentpipe.testbed import TESTBEDS


@dataclass(frozen=True)
class StackStatus:
    """The status of a stack on this machine."""

    stack: Stack
    version: str | None  # None: it is not installed, or gives none
    why_not: str | None  # why it is not installed; None: it is
    found: installed.Installation | None  # None as well for stacks that need not be built
    no_guest: str | None = None  # why it cannot live in a guest; None: it can, or does not

    @property
    def testbeds(self) -> list[str]:
        return [
            one.name
            for one in TESTBEDS.values()
            if one.mode in self.stack.commands and not (one.is_elsewhere and self.stack.not_portable)
        ]

    @property
    def repeats(self) -> str:
        """Whether the same seed gives the same packets, in a word."""
        return "no" if not self.stack.deterministic else "mostly" if self.stack.repeats_except else "yes"

    @property
    def made_with(self) -> dict[str, str]:
        """The tools, libraries and Python packages that it was built with, and their versions."""
        return {**self.found.tools, **self.found.packages} if self.found else _packages(self.stack)

    def to_mapping(self) -> dict[str, Any]:
        """The status in the form that `--json` prints."""
        stack = self.stack
        return {
            "name": stack.name,
            "title": stack.title,
            "language": stack.language,
            "home": stack.home,
            "version": self.version,
            "roles": stack.roles,
            "testcases": stack.testcases,
            "deterministic": stack.deterministic,
            "repeats_except": stack.repeats_except or None,
            "notes": stack.notes,
            "options": dict(stack.options),
            "modes": list(stack.commands),
            "alpn": list(stack.alpn),
            "logs": list(stack.logs),
            "testbeds": self.testbeds,
            "installed": self.why_not is None,
            "why_not_installed": self.why_not,
            "no_guest": self.no_guest,
            "installation": installation(stack),
            "folder": str(stack.folder),
        }


def of(stack: Stack) -> StackStatus:
    """The status of `stack`. Only a stack that need not be built is started, to report its version."""
    why_not = stack.not_installed()
    if stack.build is None:
        why_not = why_not or _not_startable(stack)
        return StackStatus(stack, None if why_not else _version(stack), why_not, None)
    if why_not is None:
        found = installed.read(stack.entry.folder)
        version = found.version if found else None
        if stack.transports == ("tcp",):
            version = _version(stack)  # the kernel's, which may be another one since
        return StackStatus(stack, version, None, found, _no_guest(stack))
    return StackStatus(stack, None, needs.what_is_missing(stack) or why_not, None)


def _no_guest(stack: Stack) -> str | None:
    if not stack.lives_in_guest("virtual-time"):
        return None
    kernel = guest.load()
    why = kernel.not_installed()
    return why and (needs.what_is_missing(kernel) or f"the guest is not installed: {why}")


def installation(stack: Stack) -> dict[str, Any] | None:
    """The entry of a manifest that says how an installed stack was built; None if it is not installed."""
    if stack.not_installed() is not None:
        return None
    if stack.build is None:
        return {"packages": _packages(stack)}
    found = installed.read(stack.entry.folder)
    return found.to_mapping() if found else None


def _packages(stack: Stack) -> dict[str, str]:
    found = installed.packages_of(stack.packages)
    return {name: version for name, version in found.items() if version is not None}


def _not_startable(stack: Stack) -> str | None:
    return next((why for mode in stack.commands if (why := stack.missing(mode))), None)


def _version(stack: Stack) -> str | None:
    try:
        mode = stack.version_mode
        command = stack.command(mode)
        if mode == "sockets":
            return loopback.version(command)
        return pipe.version(command, stack.roles[0], stack.file_protocol)
    except (OSError, pipe.PipeError, loopback.LoopbackError):
        return None
