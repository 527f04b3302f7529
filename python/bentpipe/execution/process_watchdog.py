"""A watchdog that ends process groups when the process that started them is gone, however it ended.

It is a small process in its own session, with a pipe from the process that it serves: `+N` has it watch the
group N, `-N` no more. When the pipe closes, even by `kill -9`, the remaining groups get SIGTERM, and shortly
after SIGKILL; then it removes the folder that they had for their files.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

GRACE_S = 2.0  # the time between SIGTERM and SIGKILL, in which a program can end its children


class GroupWatchdog:
    """The watchdog of the process groups of this process; threads may share it. `close` ends the remaining
    ones, and removes `folder`.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", __file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal is not for it
        )

    def watch(self, group: int) -> None:
        """Watch a process group from now on. OSError if the watchdog is gone."""
        self._tell(f"+{group}\n")

    def release(self, group: int) -> None:
        """Watch a group no longer that has ended: its number may become another's."""
        with contextlib.suppress(OSError):
            self._tell(f"-{group}\n")

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        with self._lock:
            os.write(self._process.stdin.fileno(), line.encode())


def _serve(folder: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    kept: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line[0] == "+":
            kept.add(group)
        else:
            kept.discard(group)
    _signal(kept, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline and _signal(kept, 0):
        time.sleep(0.02)
    _signal(kept, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def _signal(groups: set[int], number: int) -> bool:
    """Whether one of the groups was still there."""
    found = False
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
            found = True
    return found


if __name__ == "__main__":
    _serve(sys.argv[1])
