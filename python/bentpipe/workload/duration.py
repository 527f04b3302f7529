"""Workloads of a given duration: `duration:30s` transfers a file that is too large for this time, and stops
then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bentpipe.errors import UsageError
from bentpipe.workload.model import Kind, Workload
from bentpipe.workload.units import milliseconds, shown_time

DURATION = "duration"


@dataclass(frozen=True)
class Duration(Workload):
    """A transfer of as many bytes as a given time allows."""

    lasts_ms: int

    @property
    def own(self) -> str:
        return f"{DURATION}:{shown_time(self.lasts_ms)}"

    @property
    def own_title(self) -> str:
        return f"{DURATION} of {shown_time(self.lasts_ms)}"

    @property
    def testcase(self) -> str:
        return "transfer"

    @property
    def requests(self) -> tuple[str, ...]:
        return (f"/{DURATION}",)

    @property
    def files(self) -> Mapping[str, int]:
        return {}

    @property
    def measured_bytes(self) -> int:
        return 0

    @property
    def duration_ms(self) -> int | None:
        return self.lasts_ms


def parse(name: str, value: str, where: str, flows: tuple[str, ...]) -> Duration | None:
    """The workload `name:value`, if it is of this kind."""
    if name != DURATION:
        return None
    lasts_ms = milliseconds(value, where)
    if lasts_ms == 0:
        raise UsageError(f"{where} lasts no time", "give a time above 0")
    return Duration(lasts_ms, flows=flows)


KIND = Kind((DURATION,), parse)
