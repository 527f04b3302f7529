"""Messages to and from a host, all over one connection.

Each question has an answer, and events of programs arrive at any time. Each second the host is asked the
time, so that both sides know that there is somebody. Whoever loses the other end gives up: the host then ends
all that it has started and removes its files.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TimedOut
from dataclasses import dataclass, field
from typing import IO, Any

from bentpipe.errors import BentpipeError
from bentpipe.remote.clock import Exchange
from bentpipe.remote.ssh import HostGone

SILENCE_S = 12.0  # without any message: the other side is gone
PART = 1 << 20  # bytes of a message
_BEAT_S = 1.0
_LEAVE_S = 5.0


class Refused(BentpipeError):
    """A host's answer that it cannot do what it was asked."""


@dataclass
class _Events:
    """The events of programs that have arrived."""

    events: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)


class HostChannel:
    """The channel to a host's program. To be used by one thread, and closed."""

    def __init__(self, where: str, process: subprocess.Popen[bytes]) -> None:
        """`where` is what errors call the host, whose program is behind `process`."""
        self.where, self._process = where, process
        self.exchanges: list[Exchange] = []
        self._lock = threading.Lock()  # of what is sent
        self._asked: dict[int, tuple[Future[tuple[dict[str, Any], bytes]], int]] = {}
        self._count = 0
        self._events = _Events()
        self._why_gone = ""
        self._gone = threading.Event()
        self._last_message = time.monotonic()
        self._threads = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._beat, daemon=True),
        ]
        threading.Thread(target=self._drain, daemon=True).start()
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Leave: the host ends everything of this connection, and this waits for that."""
        self._why_gone = self._why_gone or "it was closed"
        self._gone.set()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError), self._lock:
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LEAVE_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join()

    @property
    def is_gone(self) -> bool:
        return self._gone.is_set()

    def ask(self, do: str, data: bytes, said: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Ask the host to do something: its answer, and the bytes behind it. Refused if it cannot, HostGone
        if it is not there.
        """
        answer = self._send(do, data, said)
        while True:
            try:
                found, content = answer.result(_BEAT_S)
                break
            except TimedOut:
                # Large files take their time; the beat notices whether anything arrives.
                if self._gone.is_set():
                    raise self._lost() from None
        if "error" in found:
            raise Refused(f"{self.where}: {found['error']}")
        return found, content

    def forget(self, name: str) -> None:
        """Forget the events of an earlier program of that name."""
        with self._events.changed:
            for kind in ("ready", "ended"):
                self._events.events.pop((name, kind), None)

    def wait(self, name: str, kinds: Sequence[str], seconds: float) -> dict[str, Any] | None:
        """The first of these events of a program; None if none arrives in time."""
        deadline = time.monotonic() + seconds
        with self._events.changed:
            while True:
                for kind in kinds:
                    if found := self._events.events.get((name, kind)):
                        return found
                if self._gone.is_set():
                    raise self._lost()
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self._events.changed.wait(left)

    def _send(self, do: str, data: bytes, said: Mapping[str, Any]) -> Future[tuple[dict[str, Any], bytes]]:
        answer: Future[tuple[dict[str, Any], bytes]] = Future()
        with self._lock:
            if self._gone.is_set():
                raise self._lost()
            self._count += 1
            message: dict[str, Any] = {"id": self._count, "do": do, **said}
            if data:
                message["bytes"] = len(data)
            line = json.dumps(message).encode() + b"\n"
            self._asked[self._count] = (answer, time.time_ns())
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(line + data)
                self._process.stdin.flush()
            except OSError:
                self._give_up("it takes nothing any more")
                raise self._lost() from None
        return answer

    def _listen(self) -> None:
        assert self._process.stdout is not None
        why = "the connection broke"
        try:
            while line := self._process.stdout.readline():
                arrived_ns = time.time_ns()
                self._last_message = time.monotonic()
                said = json.loads(line)
                content = self._content(self._process.stdout, said.get("bytes", 0))
                self._take(said, content, arrived_ns)
        except OSError:
            pass
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = f"it answers nonsense: {error!r}"
        self._give_up(why)

    def _drain(self) -> None:
        """Take what ssh says beside, so that it never waits for somebody to read it."""
        assert self._process.stderr is not None
        for _ in self._process.stderr:
            pass

    def _content(self, out: IO[bytes], count: int) -> bytes:
        parts = []
        while count > 0:
            part = out.read(min(count, PART))
            if not part:
                raise OSError("it is cut short")
            self._last_message = time.monotonic()
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _take(self, said: dict[str, Any], content: bytes, arrived_ns: int) -> None:
        if "event" in said:
            with self._events.changed:
                self._events.events[said["name"], said["event"]] = said
                self._events.changed.notify_all()
            return
        with self._lock:
            answer, asked_ns = self._asked.pop(said["id"])
        if "received_unix_ns" in said:
            self.exchanges.append(
                Exchange(asked_ns, said["received_unix_ns"], said["sent_unix_ns"], arrived_ns)
            )
        answer.set_result((said, content))

    def _beat(self) -> None:
        """Let both sides know that there is somebody, and what time it is."""
        while not self._gone.wait(_BEAT_S):
            if time.monotonic() - self._last_message > SILENCE_S:
                self._give_up(f"nothing came for {SILENCE_S:g} s")
                return
            if self._lock.acquire(timeout=_BEAT_S):  # else something large is on its way
                self._lock.release()
                with contextlib.suppress(HostGone):
                    self._send("time", b"", {})

    def _give_up(self, why: str) -> None:
        if not self._gone.is_set():
            self._why_gone = why
            self._gone.set()
        with contextlib.suppress(OSError):
            self._process.terminate()
        with self._events.changed:
            self._events.changed.notify_all()

    def _lost(self) -> HostGone:
        return HostGone(f"{self.where} is gone: {self._why_gone}")
