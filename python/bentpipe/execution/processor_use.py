"""The use that a run makes of this machine's processors, where trials need them in time."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from bentpipe.execution.awake import kept_awake
from bentpipe.execution.guard import Demand, LoadGuard
from bentpipe.execution.processor_load import ProcessorLoad
from bentpipe.execution.settings import Settings
from bentpipe.runs.records import Record
from bentpipe.testbed import Testbed


@dataclass(frozen=True)
class ProcessorUse:
    """How many trials run at once, by a guard if there is one, and whether processors are kept awake."""

    guard: LoadGuard | None = None
    awake: bool = False

    @classmethod
    def of(cls, testbed: Testbed, settings: Settings) -> ProcessorUse:
        """The use of a run; on other machines, their own settings decide how much may run."""
        if not testbed.needs_processors_in_time or settings.dask is not None:
            return cls()
        most, by_pressure = testbed.jobs(settings.jobs), not settings.awake
        return cls(LoadGuard(most, by_pressure, load=ProcessorLoad().since_last), settings.awake)

    def kept_awake(self) -> AbstractContextManager[None]:
        """Keep idle processors from sleeping while the block lasts, if that is wanted."""
        return kept_awake() if self.awake else nullcontext()

    def admits(self, demand: Demand) -> bool:
        """Whether a trial may be started now."""
        return self.guard is None or self.guard.admits(demand)

    def start(self, demand: Demand) -> None:
        if self.guard is not None:
            self.guard.start(demand)

    def end(self, demand: Demand, record: Record) -> None:
        """A trial has ended, with this record."""
        if self.guard is not None:
            self.guard.end(demand, record)

    def corrected(self, values: dict[str, Any]) -> dict[str, Any]:
        """A testbed's answer without a CPU pressure that comes from the program that keeps processors awake:
        that one waits whenever something else runs.
        """
        return {**values, "cpu_pressure": None} if self.awake else values
