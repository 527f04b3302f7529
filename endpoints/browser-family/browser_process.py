"""The process of a browser, and what it says on standard error."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any


class BrowserFailure(Exception):
    """The browser ended, says nothing any more, or refuses what it is told to do."""


class BrowserProcess:
    """A browser in a process group of its own, so that what ends the group of this program leaves it time to
    draw what it has. With this program it is killed.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], **streams: Any) -> None:
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            env=dict(environment),
            process_group=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            **streams,
        )
        self._last: deque[str] = deque(maxlen=3)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # None: it has ended
        # All that it says is read: a full pipe would hold it up.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, pattern: re.Pattern[str], within_s: float) -> str:
        """The group of `pattern` in the first line that has it. BrowserFailure if none comes in time."""
        while True:
            try:
                line = self._lines.get(timeout=within_s)
            except queue.Empty:
                raise self.failure(f"it did not say {pattern.pattern} within {within_s:.0f} s") from None
            if line is None:
                raise self.failure("it ended before it listened")
            if found := pattern.search(line):
                return found[1]

    def failure(self, what: str) -> BrowserFailure:
        """A failure, with the browser's last output."""
        said = " | ".join(self._last)
        return BrowserFailure(f"{what}; it said: {said}" if said else what)

    def wait(self, within_s: float) -> bool:
        """Whether it ends in time."""
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End it, and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stderr is not None, "it is a pipe"
        for line in self._process.stderr:
            if line.strip():
                self._last.append(line.strip())
            self._lines.put(line)
        self._lines.put(None)
