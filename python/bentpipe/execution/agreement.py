"""The agreement of all executions of a trial on its packets, where it repeats."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Agreement:
    """Comparison of every execution of a trial with the first one. Any thread may call it."""

    note: Callable[[str], None]
    disagreements: dict[str, str]  # trial → what was found
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _first: dict[str, int] = field(default_factory=dict)  # trial → the beginning of the hash

    def compare(self, trial: str, packet_hash: str, where: str = "") -> None:
        """Compare the packets of an execution of `trial` that ended well."""
        with self._lock:
            found = int(packet_hash.rpartition(":")[2][:16], 16)
            first = self._first.setdefault(trial, found)
            if first == found or trial in self.disagreements:
                return
            place = f" on {where}" if where else ""
            self.disagreements[trial] = what = f"packets {first:016x}…, and{place} {found:016x}…"
        self.note(f"{trial}: two executions disagree: {what}")
