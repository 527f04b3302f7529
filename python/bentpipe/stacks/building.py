"""The build of one stack, or of the guest: the `[build]` of its `stack.toml`, into a folder of the cache.

It works in a folder beside its place in the cache, which takes its name when all is done, so that a build
that is broken off leaves nothing half made. A lock keeps two commands from building the same at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from bentpipe.errors import BentpipeError, is_full
from bentpipe.stacks import guest, installed, loopback, needs, pipe
from bentpipe.stacks.guest import Guest
from bentpipe.stacks.installable import Build, Installable
from bentpipe.stacks.middleboxes import Middlebox
from bentpipe.stacks.model import Stack

LAST_LINES = 12  # of the log of a build that failed
_TAIL = 1 << 14  # bytes of a log that are looked at
_ASK_AGAIN_S = 0.2  # whether a lock is free


@dataclass(frozen=True)
class BuildResult:
    """The result of building a stack. One of the last three fields says why it is not installed, or none
    does.
    """

    stack: str
    version: str | None = None
    seconds: float | None = None  # None: there was nothing to do
    note: str | None = None
    left_out: str | None = None
    failed: str | None = None
    output: tuple[str, ...] = ()  # the last lines of the log
    log: Path | None = None

    def to_mapping(self) -> dict[str, object]:
        """The result in the form that `--json` prints."""
        state = "left out" if self.left_out else "failed" if self.failed else "installed"
        return {
            "name": self.stack,
            "state": state,
            "version": self.version,
            "seconds": self.seconds,
            "why": self.left_out or self.failed or self.note,
            "output": list(self.output),
            "log": None if self.log is None else str(self.log),
        }


class BuildError(Exception):
    """A failed build, with the reason in words."""


class _Stopped(Exception):
    """The user asked for the end."""


@dataclass(eq=False)
class BuildJob:
    """The build of one stack, in a thread of its own."""

    wanted: Installable
    build: Build
    force: bool
    jobserver: tuple[int, int]  # a pipe, as GNU make has it; cargo and what cargo starts keep to it too
    waits: bool = False  # for another command that builds the same
    started: float = field(default_factory=time.monotonic)
    _stop: bool = False
    _process: subprocess.Popen[bytes] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> BuildResult:
        """Build it, unless another command does meanwhile."""
        entry = self.wanted.entry
        try:
            for folder in (entry.place.parent, entry.log.parent, entry.lock.parent):
                folder.mkdir(parents=True, exist_ok=True)
            with self._alone(entry.lock):
                if not self.force and entry.why_not() is None:
                    found = installed.read(entry.folder)
                    return BuildResult(self.wanted.name, found.version if found else None)
                return self._install(entry)
        except _Stopped:
            return self._failure("interrupted", entry.log)
        except BuildError as failure:
            return self._failure(str(failure), entry.log)
        except OSError as error:
            why = "the disk is full" if is_full(error) else f"{error.filename}: {error.strerror}"
            return self._failure(why, entry.log)

    def last_line(self) -> str:
        """The last output of the build."""
        return "".join(_last_lines(self.wanted.entry.log, 1)) if self._process else ""

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started

    def stop(self, number: signal.Signals) -> None:
        with self._lock:
            self._stop = True
            if self._process is not None and self._process.returncode is None:
                _signal(self._process, number)

    @contextlib.contextmanager
    def _alone(self, lock: Path) -> Iterator[None]:
        with lock.open("w") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    self.waits = True
                    self._check()
                    time.sleep(_ASK_AGAIN_S)
            self.waits = False
            yield

    def _install(self, entry: installed.CacheEntry) -> BuildResult:
        _sweep(entry)
        scratch = Path(tempfile.mkdtemp(prefix=f".{entry.name}.", dir=entry.place.parent))
        begin = time.monotonic()
        try:
            scratch.chmod(0o755)
            place = scratch / "bin"  # what is called {bin} meanwhile
            place.mkdir()
            with entry.log.open("wb") as log:
                self._execute(self.wanted.fill(self.build.command, place), log)
            version, note = greet(self.wanted, place)
            if self.wanted.anew().entry != entry:
                raise BuildError("its sources were changed while it was built; install it again")
            found = describe(self.wanted, place, version, time.monotonic() - begin)
            found.write(place)
            if entry.place.exists():
                entry.place.rename(scratch / "old")
            place.rename(entry.place)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return BuildResult(self.wanted.name, version, round(found.seconds, 1), note)

    def _execute(self, command: list[str], log: IO[bytes]) -> None:
        take, put = self.jobserver
        flags = f" -j --jobserver-auth={take},{put}"
        try:
            with self._lock:
                self._check()
                self._process = process = subprocess.Popen(
                    command,
                    cwd=self.wanted.folder,
                    env={**os.environ, "MAKEFLAGS": flags, "CARGO_TERM_COLOR": "never"},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=self.jobserver,
                )
        except OSError as error:
            raise BuildError(f"{command[0]} cannot be started: {error.strerror}") from error
        code = process.wait()
        _signal(process, signal.SIGKILL)  # what it left behind, in its group
        self._check()
        if code != 0:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
            raise BuildError(f"{command[0]} {how}")

    def _check(self) -> None:
        if self._stop:
            raise _Stopped

    def _failure(self, why: str, log: Path) -> BuildResult:
        lines = _last_lines(log, LAST_LINES) if self._process else ()
        return BuildResult(self.wanted.name, failed=why, output=lines, log=log if self._process else None)


def greet(wanted: Installable, place: Path) -> tuple[str | None, str | None]:
    """The version that a program whose {bin} is `place` reports, and a note if it reports none. BuildError if
    a program is absent.
    """
    for program in wanted.programs():
        if not (place / program).is_file():
            raise BuildError(f"the build ended well, but there is no {{bin}}/{program}")
    try:
        return _version(wanted, place), None
    except (
        OSError,
        subprocess.CalledProcessError,
        BentpipeError,
        pipe.PipeError,
        loopback.LoopbackError,
    ) as error:
        return None, f"it gives no version: {error} (see: bentpipe stacks test {wanted.name})"


def _version(wanted: Installable, place: Path) -> str | None:
    if isinstance(wanted, Guest):
        return guest.version(place / "linux")
    if isinstance(wanted, Middlebox):
        return wanted.version_in(place)
    assert isinstance(wanted, Stack), wanted
    mode = wanted.version_mode
    command = wanted.fill(wanted.commands[mode], place)
    if mode == "sockets":
        return loopback.version(command)
    return pipe.version(command, wanted.roles[0], wanted.file_protocol)


def describe(wanted: Installable, place: Path, version: str | None, seconds: float) -> installed.Installation:
    """The content of `installed.json` for a program whose {bin} is `place`."""
    files = installed.files(place)
    return installed.Installation(
        stack=wanted.name,
        inputs_sha256=wanted.entry.inputs_sha256,
        version=version,
        programs={name: str(files[name]["sha256"]) for name in wanted.programs() if name in files},
        tools=needs.versions(wanted),
        packages=installed.packages_in(place),
        installed=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=round(seconds, 1),
        files=files,
    )


def _sweep(entry: installed.CacheEntry) -> None:
    """Remove what builds of `entry` left that were killed. Its lock is ours, so none is at work."""
    for left in entry.place.parent.glob(f".{entry.name}.*"):
        shutil.rmtree(left, ignore_errors=True)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _last_lines(log: Path, count: int) -> tuple[str, ...]:
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(log.stat().st_size - _TAIL, 0))
        lines = [line.rstrip() for line in file.read().decode(errors="replace").splitlines()]
        return tuple([line for line in lines if line][-count:])
    return ()
