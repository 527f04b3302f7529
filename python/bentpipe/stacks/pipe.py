"""Questions to a single endpoint program over its pipes (`endpoints/CONTRACT.md`).

This speaks just enough of the contract to ask a program whether it takes a HELLO, to give it an empty RUN and
to say FINISH. Trials with packets are the coordinator's.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import struct
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from bentpipe import paths
from bentpipe.stacks.model import PROTOCOLS
from bentpipe.stacks.time_limits import silence_s
from bentpipe.workload import TESTCASES

HELLO, READY, RUN, RAN, FINISH, BYE = range(1, 7)
NEVER = 2**64 - 1
BODY_LIMIT = 1 << 28  # bytes of a message's body
_HEADER = struct.Struct("<IB")
_RUN = struct.Struct("<QI")
_RAN = struct.Struct("<QBI")
_DATAGRAM = struct.Struct("<QBH")


class PipeError(Exception):
    """A breach of the contract on the pipe, or the end of the program."""


@dataclass(frozen=True)
class Ran:
    """The answer to RUN: when to run next, whether done, and the times and sizes of what departed."""

    next_wake: int
    done: int
    departures: tuple[tuple[int, int], ...]


def hello(
    role: str, testcase: str, options: Mapping[str, str], folder: Path, alpn: str = PROTOCOLS[0]
) -> dict[str, Any]:
    """A HELLO for an endpoint that is to fetch or serve one file of 1000 bytes below `folder`; in `upload`,
    to send or store it.
    """
    client = role == "client"
    known = TESTCASES.get(testcase)  # an unknown one is tried too
    receives = known is None or known.sender != role
    return {
        "contract": 1,
        "role": role,
        "testcase": testcase,
        "requests": ["https://server:443/1000"] if client else [],
        "options": dict(options),
        "seed": "00f1e2d3c4b5a697",
        "epoch_unix_s": 946684800,
        "local": "192.0.2.1:50000" if client else "198.51.100.1:443",
        "remote": "198.51.100.1:443" if client else "192.0.2.1:50000",
        "www": None if receives else str(folder / "www"),
        "downloads": str(folder / "downloads") if receives else None,
        "certs": str(paths.certs()),
        "keylog": None,
        "qlog": None,
        **({} if alpn == PROTOCOLS[0] else {"alpn": alpn}),
    }


class PipeProgram:
    """The process of an endpoint in virtual time, and its two pipes. Leaving the `with` block kills it if it
    still runs, and reaps it.
    """

    def __init__(self, command: Sequence[str], timeout_s: float | None = None) -> None:
        self.timeout_s = float(silence_s()) if timeout_s is None else timeout_s
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- closed in __exit__
        self._buffer = b""
        self._code: int | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="bentpipe-")  # of its own temporary files
        self._to, self._from, self._pid = _spawn(command, self._log.fileno(), self._scratch.name)

    def __enter__(self) -> PipeProgram:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.hang_up()
        os.close(self._from)
        if self._code is None and self.exit_code(0.0) is None:
            os.killpg(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        self._log.close()
        self._scratch.cleanup()

    def send(self, kind: int, body: bytes) -> None:
        """Write a message. If the program has ended already, reading its answer shows that."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._to, _HEADER.pack(len(body), kind) + body)

    def receive(self, kind: int) -> bytes:
        """Read a message, which must be of `kind`; PipeError if it is not, or if none arrives in time."""
        length, found = _HEADER.unpack(self._read(_HEADER.size))
        if length > BODY_LIMIT:
            raise PipeError(
                f"it announced a message of {length} bytes: is something else printed to descriptor 4?"
            )
        body = self._read(length)
        if found != kind:
            raise PipeError(f"it answered a message of type {found} instead of {kind}")
        return body

    def ready(self, greeting: Mapping[str, Any]) -> Any:
        """Send HELLO; the JSON of READY."""
        self.send(HELLO, json.dumps(greeting).encode())
        return _json(self.receive(READY), "READY")

    def run(self, until: int) -> Ran:
        """Send RUN without arrivals until the time `until` in ns."""
        self.send(RUN, _RUN.pack(until, 0))
        body = self.receive(RAN)
        try:
            next_wake, done, count = _RAN.unpack_from(body)
            position, departures = _RAN.size, []
            for _ in range(count):
                at, _ecn, size = _DATAGRAM.unpack_from(body, position)
                departures.append((at, size))
                position += _DATAGRAM.size + size
        except struct.error:
            raise PipeError(
                f"RAN has {len(body)} bytes, too few for the datagrams that it announces"
            ) from None
        if position != len(body):
            raise PipeError(f"RAN is {len(body)} bytes long, but its datagrams end at {position}")
        return Ran(next_wake, done, tuple(departures))

    def finish(self) -> Any:
        """Send FINISH; the JSON of BYE."""
        self.send(FINISH, b"")
        return _json(self.receive(BYE), "BYE")

    def hang_up(self) -> None:
        """Close the program's descriptor 3, as a coordinator does that goes away."""
        if self._to >= 0:
            os.close(self._to)
            self._to = -1

    def exit_code(self, timeout_s: float | None = None) -> int | None:
        """The program's exit code (negative: the signal that ended it); None if it does not exit in time."""
        deadline = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while self._code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= deadline:
                break
            else:
                time.sleep(0.002)
        return self._code

    def output(self) -> str:
        """The end of its standard output and standard error."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()[-600:]

    def _read(self, size: int) -> bytes:
        deadline = time.monotonic() + self.timeout_s
        while len(self._buffer) < size:
            left = max(deadline - time.monotonic(), 0.0)
            if not select.select([self._from], [], [], left)[0]:
                raise PipeError(f"it said nothing for {self.timeout_s:g} s")
            chunk = os.read(self._from, 1 << 16)
            if not chunk:
                code = self.exit_code()
                went = "closed its pipe" if code is None else f"exited with {code}"
                raise PipeError(f"it {went} instead of answering" + _quoted(self.output()))
            self._buffer += chunk
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data


def refusal(
    command: Sequence[str], greeting: Mapping[str, Any], timeout_s: float | None = None
) -> str | None:
    """None if the program answers `greeting` by exiting with 127; otherwise what it did instead, in words."""
    try:
        with PipeProgram(command, timeout_s) as program:
            try:
                answer = program.ready(greeting)
                return f"it answered READY {json.dumps(answer)[:100]}"
            except PipeError as error:
                code = program.exit_code()
                return None if code == 127 else str(error)
    except OSError as error:
        return f"it cannot be started: {error.strerror}"


def version(command: Sequence[str], role: str, alpn: str) -> str:
    """The version of the stack that the program reports in its READY. PipeError or OSError if it reports
    none.
    """
    with tempfile.TemporaryDirectory() as folder, PipeProgram(command) as program:
        for name in ("www", "downloads"):
            Path(folder, name).mkdir()
        ready = program.ready(hello(role, "transfer", {}, Path(folder), alpn))
        if not isinstance(ready, dict) or not isinstance(ready.get("version"), str):
            raise PipeError("its READY gives no version")
        return str(ready["version"])


def _spawn(command: Sequence[str], log: int, scratch: str) -> tuple[int, int, int]:
    child_in, to_child = os.pipe()
    from_child, child_out = os.pipe()
    # dup2 onto 3 and 4 in the child must not run over a descriptor that is still needed: move them up first.
    high = [_above(child_in), _above(child_out), _above(log)]
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, high[2], 1),
        (os.POSIX_SPAWN_DUP2, high[2], 2),
        (os.POSIX_SPAWN_DUP2, high[0], 3),
        (os.POSIX_SPAWN_DUP2, high[1], 4),
    ]
    try:
        environment = {**os.environ, "TMPDIR": scratch}
        pid = os.posix_spawnp(command[0], list(command), environment, file_actions=actions, setpgroup=0)
    except BaseException:
        os.close(to_child)
        os.close(from_child)
        raise
    finally:
        for descriptor in (child_in, child_out, *high):
            os.close(descriptor)
    return to_child, from_child, pid


def _above(descriptor: int) -> int:
    """A duplicate with a number of at least 10, closed on exec."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)


def _json(body: bytes, name: str) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        start = body[:60].decode(errors="replace")
        raise PipeError(f"{name} is no JSON; it begins with: {start}") from None


def _quoted(text: str) -> str:
    return f"; it wrote: {text}" if text else ""
