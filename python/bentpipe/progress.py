"""The progress that a user sees while a campaign runs: a bar on a terminal, an occasional plain line
elsewhere. On standard error.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.text import Text

PLAIN_EVERY_S = 10.0


def count(trials: int) -> str:
    """`1 trial`, `2 trials`."""
    return f"{trials} trial" if trials == 1 else f"{trials} trials"


def choose(quiet: bool = False) -> ProgressBar | ProgressLines:
    """A bar if standard error is a terminal that can show one, plain lines otherwise."""
    console = Console(stderr=True)
    if console.is_terminal and not console.is_dumb_terminal and not quiet:
        return ProgressBar(console)
    return ProgressLines()


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f} trials/s")


class _Failures(ProgressColumn):
    def render(self, task: Task) -> Text:
        failed = task.fields.get("failed", 0)
        return Text(f"{failed} failed", style="red" if failed else "")


class _Latest(ProgressColumn):
    """The result that arrived last: numbers to look at, long before there is a table."""

    def render(self, task: Task) -> Text:
        return Text(task.fields.get("latest", ""), style="dim", no_wrap=True, overflow="ellipsis")


class ProgressBar:
    """A progress bar with rate, time left, failures, and the trial that ended last."""

    def __init__(self, console: Console) -> None:
        self._failed = 0
        self._progress = Progress(
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            _Failures(),
            _Latest(),
            console=console,
            transient=True,
            speed_estimate_period=60.0,
        )
        self._task = self._progress.add_task("", total=None, failed=0)

    def start(self, total: int, _what: str = "") -> None:
        self._progress.update(self._task, total=total)
        self._progress.start()

    def more(self, trials: int) -> None:
        """Add `trials` to the total that `start` was given."""
        self._progress.update(self._task, total=(self._progress.tasks[0].total or 0) + trials)

    def advance(self, failed: bool, latest: str = "") -> None:
        self._failed += failed
        self._progress.update(self._task, advance=1, failed=self._failed, latest=latest)

    def note(self, text: str) -> None:
        self._progress.console.print(f"note: {text}", markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        self._progress.stop()


@dataclass
class ProgressLines:
    """A line for the first result and every few seconds, for logs."""

    every_s: float = PLAIN_EVERY_S
    _total: int = 0
    _done: int = 0
    _failed: int = 0
    _started: float = field(default_factory=time.monotonic)
    _last: float = field(default_factory=time.monotonic)

    def start(self, total: int, what: str = "to run") -> None:
        self._total, self._started = total, time.monotonic()
        _say(f"{count(total)} {what}")

    def more(self, trials: int) -> None:
        """Add `trials` to the total that `start` was given."""
        self._total += trials

    def advance(self, failed: bool, latest: str = "") -> None:
        self._done += 1
        self._failed += failed
        now = time.monotonic()
        first = self._done == 1 and latest
        if first or now - self._last >= self.every_s or self._done == self._total:
            self._last = now
            _say(self._line(now - self._started) + (f"; {latest}" if latest else ""))

    def note(self, text: str) -> None:
        _say(f"note: {text}")

    def stop(self) -> None:
        sys.stderr.flush()

    def _line(self, elapsed_s: float) -> str:
        rate = self._done / elapsed_s if elapsed_s > 0 else 0.0
        left = f"{(self._total - self._done) / rate:.0f} s left" if rate else "time left unknown"
        return f"{self._done}/{count(self._total)}, {rate:.1f} trials/s, {left}, {self._failed} failed"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
