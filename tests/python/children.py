"""Nothing outlives a test run, however the run ends: no process, and no file outside of pytest's own folder.

pytest may be killed without a chance to clean up. So a keeper, a process in a session of its own, holds the
other end of a pipe of pytest's. When that closes, it ends all that the tests have started. These carry a mark
in their environment, which a process has from its parent, even one that has left its group, its session and
its parent since; those that do not show theirs are children of such that do.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

MARK = "BENTPIPE_TESTS"
_KEEPER = "keeper"  # what stands in the mark's place in a keeper's own environment
PATIENCE_S = 120.0  # of waits whose length is not what is tested


class Keeper:
    """Ends what this process starts from now on, when this process is gone."""

    def __init__(self) -> None:
        # A worker of xdist has a keeper of its own; what it starts is no longer of the one of its parent.
        self.token = secrets.token_hex(8)  # chance that no outcome depends on
        # For what other users must be able to read: pytest's own folders are closed to them.
        self.public = Path(f"/tmp/bentpipe-tests-{self.token}")
        self._process = subprocess.Popen(
            [sys.executable, "-S", __file__, self.token, str(self.public)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, MARK: _KEEPER},
        )
        os.environ[MARK] = self.token

    def end(self) -> None:
        """All is over: what is left now has no business to be there."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def of_run(token: str) -> set[int]:
    """The processes that carry the mark, and all below them."""
    mark, keeper = (f"{MARK}={value}".encode() for value in (token, _KEEPER))
    marked: set[int] = set()
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            if keeper in environment:
                continue  # it goes by itself, when it has done its work
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if mark in environment:
                marked.add(int(entry.name))
        except OSError:
            continue  # it is gone, or somebody else's
    while more := {one for one, parent in parents.items() if parent in marked} - marked:
        marked |= more
    return marked


def runs(process: int) -> bool:
    """Whether a process runs; one that has ended, and of which nobody has asked how, does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def wait_until_gone(*processes: int) -> list[int]:
    """Those that still run after a time in which all that are told to end do."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := [one for one in processes if runs(one)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def wait_for(what: str, has_come: Callable[[], object]) -> None:
    """Waits until it has. The limit is for what never comes, not for what comes late on a busy machine."""
    deadline = time.monotonic() + PATIENCE_S
    while not has_come():
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.02)


def _keep(token: str, folder: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    deadline = time.monotonic() + PATIENCE_S
    while (left := [one for one in of_run(token) if runs(one)]) and time.monotonic() < deadline:
        for one in left:
            try:
                os.kill(one, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _keep(*sys.argv[1:])
