"""The load of this machine's processors."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

_STAT = Path("/proc/stat")
_EVERY_S = 5.0
# Fields of its first line (proc_stat(5)); `nice` gives way to all else, as what keeps processors awake.
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_SPARE = ("nice", "idle", "iowait")


@dataclass
class ProcessorLoad:
    """The share of the processors' time that programs took, except those of the lowest priority."""

    stat: Path = _STAT
    every_s: float = _EVERY_S
    _at: float = field(default_factory=time.monotonic)
    _before: dict[str, int] = field(default_factory=dict)

    def since_last(self) -> float | None:
        """The load since the last call, from 0 to 1; None the first time, until `every_s` later, and where
        the system does not report it.
        """
        now = time.monotonic()
        if self._before and now - self._at < self.every_s:
            return None
        counted = self._counted()
        spent = {name: counted[name] - self._before.get(name, 0) for name in counted}
        is_first = not self._before
        self._at, self._before = now, counted
        total = sum(spent.values())
        if is_first or total <= 0:
            return None
        return 1 - sum(spent[name] for name in _SPARE) / total

    def _counted(self) -> dict[str, int]:
        """Ticks since the machine started; none where the system does not tell."""
        try:
            words = self.stat.read_text().split()[1 : len(_FIELDS) + 1]
            return dict(zip(_FIELDS, map(int, words), strict=True))
        except (OSError, ValueError):
            return {}
