"""A connection to a host: OpenSSH's client, and behind it Bentpipe's program, `bentpipe-remote host`.

One connection carries all there is to say: programs that are started, files, times. The ssh that the user has
is used as it is, with its configuration, agent and keys; host keys are verified, always. Whoever loses the
other end gives up: the host then ends all that it has started and removes its files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from bentpipe import paths
from bentpipe.errors import BentpipeError
from bentpipe.remote.clock import Exchange
from bentpipe.remote.links import LinkHost

SILENCE_S = 12.0  # nothing comes for so long: the other side is gone
_BEAT_S = 1.0
_ANSWER_S = 60.0
_GREETING_S = 30.0
_LEAVE_S = 5.0
_PART = 1 << 20  # bytes of a message
_ABSENT = "bentpipe-remote: absent"
# Both run under the user's shell there, whichever that is, so each is one word in quotes for it. Arguments
# are hashes and numbers.
_START = (
    'd="${XDG_CACHE_HOME:-$HOME/.cache}/bentpipe-remote"; p="$d/$1/bentpipe-remote"; '
    'if [ -x "$p" ] && [ "$(sha256sum < "$p")" = "$1  -" ]; then exec "$p" host --ahead-ms "$2"; '
    f'else echo "{_ABSENT}"; fi'
)
_BRING = (
    'umask 077; d="${XDG_CACHE_HOME:-$HOME/.cache}/bentpipe-remote/$1"; mkdir -p "$d" && '
    'cat > "$d/.partial" && [ "$(sha256sum < "$d/.partial")" = "$1  -" ] && '
    'chmod 700 "$d/.partial" && mv "$d/.partial" "$d/bentpipe-remote" && echo brought'
)


class HostGone(BentpipeError):
    """The connection to a host broke, or cannot be made."""


class Refused(BentpipeError):
    """What a host answers that it cannot do."""


@dataclass
class _Events:
    """What was told of programs."""

    told: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)


class HostConnection:
    """A host that is reached. To be used by one thread, and closed."""

    def __init__(self, role: str, host: LinkHost, links: Path) -> None:
        """Connect. `links` is the folder that paths count from. HostGone, with why, if that fails."""
        self.role, self._host, self._links = role, host, links
        self.where = f"the {role}'s host {host.host}"
        self.digest = ""  # of Bentpipe's program there
        self.exchanges: list[Exchange] = []
        self._lock = threading.Lock()  # of what is sent
        self._asked: dict[int, tuple[Future[tuple[dict[str, Any], bytes]], int]] = {}
        self._count = 0
        self._events = _Events()
        self._why_gone = ""
        self._gone = threading.Event()
        self._process, first = self._greet()
        self._heard = time.monotonic()
        self._threads = [
            threading.Thread(target=self._listen, args=(first,), daemon=True),
            threading.Thread(target=self._beat, daemon=True),
        ]
        threading.Thread(target=self._drain, daemon=True).start()
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Leave: the host ends what is left of this connection's, and that is waited for."""
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

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the host is, and which programs it has."""
        return self.ask("facts")

    def ask(self, do: str, data: bytes = b"", **said: Any) -> dict[str, Any]:
        """Have the host do something; its answer. Refused if it cannot, HostGone if it is not there."""
        return self._ask(do, data, said)[0]

    def exchange(self, times: int) -> None:
        """Ask what time it is there, so many times."""
        for _ in range(times):
            self.ask("time")

    def put(self, path: str, content: bytes | Path) -> None:
        """Put a file into the connection's folder."""
        with contextlib.ExitStack() as stack:
            if isinstance(content, Path):
                file = stack.enter_context(content.open("rb"))
                parts = iter(lambda: file.read(_PART), b"")
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
        return self._ask("get", b"", {"path": path})[1]

    def start(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        ready: str | None = None,
        sha256: str | None = None,
    ) -> int:
        """Start a program, whose hash must be `sha256` if that is given; when, by the host's clock."""
        with self._events.changed:
            for kind in ("ready", "ended"):
                self._events.told.pop((name, kind), None)
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
        """The first of these events of a program; None if none comes in time."""
        deadline = time.monotonic() + seconds
        with self._events.changed:
            while True:
                for kind in kinds:
                    if found := self._events.told.get((name, kind)):
                        return found
                if self._gone.is_set():
                    raise self._lost()
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self._events.changed.wait(left)

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
        """Have a program end, at last by force; how it ended."""
        self.signal(name, signal)
        if (ended := self.wait(name, ["ended"], seconds)) is None:
            self.signal(name, "KILL")
            ended = self.wait(name, ["ended"], _ANSWER_S)
        if ended is None:
            raise HostGone(f"{self.where}: {name} does not end")
        return ended

    def _ask(self, do: str, data: bytes, said: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        answer = self._send(do, data, said)
        while True:
            try:
                found, content = answer.result(_BEAT_S)
                break
            except Late:
                # Large files take their time; whether anything comes is the beat's affair.
                if self._gone.is_set():
                    raise self._lost() from None
        if "error" in found:
            raise Refused(f"{self.where}: {found['error']}")
        return found, content

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

    def _greet(self) -> tuple[subprocess.Popen[bytes], bytes]:
        """A process of ssh behind which the host's program is, and the first line of what it says."""
        program = paths.program("bentpipe-remote").read_bytes()
        digest = self.digest = hashlib.sha256(program).hexdigest()
        for _ in range(2):
            process = self._ssh(_START, digest, str(self._host.clock_ahead_ms))
            first = self._first_line(process)
            if first.strip() != _ABSENT.encode():
                return process, first
            process.wait()
            self._bring(program, digest)
        raise HostGone(f"{self.where}: Bentpipe's program does not stay there", "is there room in ~/.cache?")

    def _bring(self, program: bytes, digest: str) -> None:
        process = self._ssh(_BRING, digest)
        try:
            out, err = process.communicate(program, timeout=600)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        if b"brought" not in out:
            raise HostGone(f"{self.where}: Bentpipe's program cannot be brought there: {_last(err)}")

    def _first_line(self, process: subprocess.Popen[bytes]) -> bytes:
        """What it says when it is asked something; HostGone if it says nothing."""
        timer = threading.Timer(_GREETING_S, process.kill)
        timer.start()
        assert process.stdin is not None and process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b'{"id": 0, "do": "time"}\n')
                process.stdin.flush()
            for line in process.stdout:  # a shell there may have a greeting of its own
                if line.startswith(b"{") or line.strip() == _ABSENT.encode():
                    return line
        finally:
            timer.cancel()
        process.wait()
        assert process.stderr is not None
        why = _last(process.stderr.read()) or f"ssh ended with {process.returncode}"
        raise HostGone(f"{self.where} cannot be reached: {why}", f"try: {shlex.join(self._words('true'))}")

    def _ssh(self, script: str, *arguments: str) -> subprocess.Popen[bytes]:
        there = shlex.join(["exec", "sh", "-c", script, "sh", *arguments])
        return subprocess.Popen(
            self._words(there),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=-1,
            start_new_session=True,  # a Ctrl-C is for this program alone
        )

    def _words(self, command: str) -> list[str]:
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ControlPath": "none",  # a connection of its own: its end says that the host ends all
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "ClearAllForwardings": "yes",
            "PermitLocalCommand": "no",
            "ConnectTimeout": "15",
        }
        words = ["ssh", "-T", *(f"-o{name}={value}" for name, value in options.items())]
        if self._host.ssh_config is not None:
            words += ["-F", str(self._links / Path(self._host.ssh_config).expanduser())]
        if self._host.port is not None:
            words += ["-p", str(self._host.port)]
        if self._host.user is not None:
            words += ["-l", self._host.user]
        return [*words, "--", self._host.host, command]

    def _listen(self, first: bytes) -> None:
        del first  # the answer to the greeting's question, whose time is not a good one
        assert self._process.stdout is not None
        why = "the connection broke"
        try:
            while line := self._process.stdout.readline():
                heard_ns = time.time_ns()
                self._heard = time.monotonic()
                said = json.loads(line)
                content = self._content(self._process.stdout, said.get("bytes", 0))
                self._take(said, content, heard_ns)
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
            part = out.read(min(count, _PART))
            if not part:
                raise OSError("it is cut short")
            self._heard = time.monotonic()
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _take(self, said: dict[str, Any], content: bytes, heard_ns: int) -> None:
        if "event" in said:
            with self._events.changed:
                self._events.told[said["name"], said["event"]] = said
                self._events.changed.notify_all()
            return
        with self._lock:
            answer, asked_ns = self._asked.pop(said["id"])
        if "received_unix_ns" in said:
            self.exchanges.append(
                Exchange(asked_ns, said["received_unix_ns"], said["sent_unix_ns"], heard_ns)
            )
        answer.set_result((said, content))

    def _beat(self) -> None:
        """Let both sides know that there is somebody, and what time it is."""
        while not self._gone.wait(_BEAT_S):
            if time.monotonic() - self._heard > SILENCE_S:
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


def _last(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
