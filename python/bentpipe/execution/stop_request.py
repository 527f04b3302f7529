"""Signals that ask a process to stop what it executes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class StopRequest:
    """A request for an early end. A plain flag: a signal handler may interrupt another."""

    made: bool = False

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Have Ctrl-C, SIGTERM and SIGHUP make the request, however often, instead of ending the process."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._make) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _make(self, *_signal: object) -> None:
        self.made = True
