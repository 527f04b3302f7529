"""A connection to a host: the requests to it, and the events of its programs.

Behind it is Bentpipe's own program, `bentpipe-remote host`, which `ssh` reaches and `channel` talks to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from bentpipe.remote.channel import PART, HostChannel
from bentpipe.remote.clock import Exchange
from bentpipe.remote.links import LinkHost
from bentpipe.remote.ssh import HostGone, SshHost

_ANSWER_S = 60.0


class HostConnection:
    """A connected host. To be used by one thread, and closed."""

    def __init__(self, role: str, host: LinkHost, links: Path) -> None:
        """Connect. `links` is the folder that paths count from. HostGone, with why, if that fails."""
        self.role = role
        self.where = f"the {role}'s host {host.host}"
        # The hash is that of Bentpipe's program there.
        process, self.digest = SshHost(self.where, host, links).greet()
        self._channel = HostChannel(self.where, process)

    def close(self) -> None:
        """Leave: the host ends everything of this connection, and this waits for that."""
        self._channel.close()

    @property
    def is_gone(self) -> bool:
        return self._channel.is_gone

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges with its clock so far."""
        return self._channel.exchanges

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The properties of the host, and the programs that it has."""
        return self.ask("facts")

    def ask(self, do: str, data: bytes = b"", **said: Any) -> dict[str, Any]:
        """Ask the host to do something; its answer. Refused if it cannot, HostGone if it is not there."""
        return self._channel.ask(do, data, said)[0]

    def exchange(self, times: int) -> None:
        """Ask for its time, `times` times."""
        for _ in range(times):
            self.ask("time")

    def put(self, path: str, content: bytes | Path) -> None:
        """Put a file into the connection's folder."""
        with contextlib.ExitStack() as stack:
            if isinstance(content, Path):
                file = stack.enter_context(content.open("rb"))
                parts = iter(lambda: file.read(PART), b"")
            else:
                parts = iter([content])
            first = True
            for part in parts:
                self.ask("put", part, path=path, first=first)
                first = False
            if first:
                self.ask("put", b"", path=path, first=True)

    def get(self, path: str) -> bytes:
        """A file of the connection's folder."""
        return self._channel.ask("get", b"", {"path": path})[1]

    def start(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        ready: str | None = None,
        sha256: str | None = None,
    ) -> int:
        """Start a program, whose hash must be `sha256` if that is given; when, by the host's clock."""
        self._channel.forget(name)
        program = {
            "name": name,
            "command": list(command),
            "sha256": sha256,
            "environment": dict(environment or {}),
            "ready": ready,
        }
        at: int = self.ask("start", program=program)["at_unix_ns"]
        return at

    def wait(self, name: str, kinds: Sequence[str], seconds: float) -> dict[str, Any] | None:
        """The first of these events of a program; None if none arrives in time."""
        return self._channel.wait(name, kinds, seconds)

    def run(self, name: str, command: Sequence[str], seconds: float = 30.0) -> dict[str, Any] | None:
        """Run a program of the host to its end; None if it took too long."""
        self.start(name, command)
        ended = self.wait(name, ["ended"], seconds)
        if ended is None:
            self.signal(name, "KILL")
        return ended

    def signal(self, name: str, signal: str) -> None:
        self.ask("signal", name=name, signal=signal)

    def end(self, name: str, signal: str, seconds: float) -> dict[str, Any]:
        """End a program, by force if need be; how it ended."""
        self.signal(name, signal)
        if (ended := self.wait(name, ["ended"], seconds)) is None:
            self.signal(name, "KILL")
            ended = self.wait(name, ["ended"], _ANSWER_S)
        if ended is None:
            raise HostGone(f"{self.where}: {name} does not end")
        return ended
