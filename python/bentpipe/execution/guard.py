"""The guard of the load in real time: it limits how many trials run at once, so that the links keep to the
model.

What is too much depends on the stacks, the rates and what else the machine does. So the limit is found while
trials run, as congestion control finds a window: each trial whose packets left in time makes it larger by
a part if it was in use, each that did not halves it; but one for each processor there may always be, since
with so few it is not they that were too much. Trials of stacks that need much CPU time weigh more.

A trial that takes minutes since its link loses packets says late that it was in time. So where processors
have next to nothing to do, the limit grows while trials run, too.

Whether packets are in time says nothing of a browser, whose own work is part of what is measured: beside
another one it loads a page later. Such stacks have their own processors, whatever the limit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bentpipe.runs.records import Record

TRIES = 4  # of a trial whose testbed did not keep to the model, before its record says so
_GOOD = 0.5  # a release error (p99.9) below this share of what it may be allows more trials at once
_IDLE = 0.25  # of the processors' time: with less in use one more trial may run
_MOST_PRESSURE = 60.0  # percent of the last 10 s in which some task waited: none is started above


@dataclass(frozen=True)
class Demand:
    """The demand of a trial on the machine."""

    weight: float  # of its heaviest program, where most take 1
    processors: int = 0  # that are to be its own


@dataclass
class LoadGuard:
    """The guard, whose limit is in weights of trials."""

    most: float  # never more than this
    by_pressure: bool = True  # of no use where something runs all the time at a low priority
    least: float = field(default_factory=lambda: float(os.cpu_count() or 1))  # processors
    limit: float = field(default_factory=lambda: 2.0 * (os.cpu_count() or 1))
    load: Callable[[], float | None] = lambda: None  # share of the processors' time, now and then
    running: float = 0.0
    sharing: int = 0  # trials under way that share processors
    taken: int = 0  # processors of the others

    def admits(self, demand: Demand) -> bool:
        """Whether a trial may be started now. It always may if none is running."""
        if self.running == 0:
            return True
        taken, sharing = self.taken + demand.processors, self.sharing + (not demand.processors)
        if taken and taken + sharing > self.least:
            return False
        if self.by_pressure and _pressure() >= _MOST_PRESSURE:
            return False
        if self.running + demand.weight > self.limit:
            load = self.load()
            if load is not None and load < _IDLE:
                self.limit = min(self.most, self.limit + 1)
        return self.running + demand.weight <= min(self.limit, self.most)

    def start(self, demand: Demand) -> None:
        self._count(demand, 1)

    def _count(self, demand: Demand, trials: int) -> None:
        self.running += trials * demand.weight
        self.taken += trials * demand.processors
        self.sharing += 0 if demand.processors else trials

    def end(self, demand: Demand, record: Record) -> None:
        """Learn from a trial that has ended. If far less than the limit ran, it does not show whether more
        can.
        """
        used = self.running > self.limit / 2
        self._count(demand, -1)
        late, limit = record.release_error_p999_ms, record.release_error_limit_ms
        if record.outcome == "invalid":
            self.limit = max(self.least, self.limit / 2)
        elif used and late is not None and limit is not None and late < _GOOD * limit:
            self.limit = min(self.most, self.limit + 0.5)


def _pressure() -> float:
    """Percent of the last ten seconds in which some task waited for a processor; 0 if it is not known."""
    try:
        first = Path("/proc/pressure/cpu").read_text().split()
    except OSError:
        return 0.0
    return next((float(word.removeprefix("avg10=")) for word in first if word.startswith("avg10=")), 0.0)
