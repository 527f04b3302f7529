"""The wall clock of virtual time, which stands in for the one that a library reads for tickets and qlog."""

from __future__ import annotations

import datetime

NANOS = 1_000_000_000


class WallClock:
    """The clock of `time.time` and `utcnow`: the time of the trial, as its driver last set it."""

    def __init__(self, epoch_unix_s: int) -> None:
        self._epoch_unix_s = epoch_unix_s
        self.now_ns = 0

    def time(self) -> float:
        """Seconds since 1970."""
        return self._epoch_unix_s + self.now_ns / NANOS

    def utcnow(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.time(), datetime.UTC)
