"""Runs that are watched in the browser while they are under way, by a server of their own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from bentpipe.explore.watch_server import FINISHED, RUN


class Watch:
    """The server that shows runs, one after the other; it prints its address."""

    def __init__(self, opens_browser: bool) -> None:
        words = [
            sys.executable,
            "-m",
            "bentpipe.explore.watch_server",
            *(["--open"] if opens_browser else []),
        ]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is for the run, which says whether it is complete
        )

    def show(self, run: Path) -> None:
        """Show this run from now on."""
        self._tell(f"{RUN}{run.resolve()}\n")

    def finish(self) -> None:
        """Say that all runs are complete, and wait until no page shows them any more."""
        self._tell(f"{FINISHED}\n")
        self._end_input()
        self._process.wait()

    def close(self) -> None:
        """End at once."""
        self._end_input()
        self._process.terminate()
        self._process.wait()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # whoever watches may end it; the run goes on
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _end_input(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
