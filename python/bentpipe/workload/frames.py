"""Workloads that are frames with deadlines: `frames:30s:streams`, `frames:30s:datagrams:1s`.

A server makes them at a fixed rate and sends each at once; `endpoints/contract/media.md` says how.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bentpipe.errors import UsageError, one_of
from bentpipe.schema.bundle import BundleFrameStream
from bentpipe.workload.model import Kind, Workload
from bentpipe.workload.testcase import TestCase
from bentpipe.workload.units import milliseconds, shown_time

TESTCASE = "frames"
# The carriers of frames.
CARRIERS = ("streams", "datagrams")
INTERVAL_US = 33_333
# The longest one-way delay that ITU-T G.114 plans with.
DEADLINE_MS = 400
# Of a group of frames the first stands alone, and is larger than each of the others by this factor.
GROUP = 30
FIRST_BYTES, OTHER_BYTES = 42_852, 7_142
# All requests stand in one variable of the environment in socket mode, which Linux keeps below 128 KiB.
_LONGEST_MS = 60_000
# Nothing may be sent between the last frame and its deadline, and noq and quinn close a connection that is
# idle for 30 s.
_LONGEST_DEADLINE_MS = 25_000


@dataclass(frozen=True)
class FrameViewing(Workload):
    """A stream of frames that is watched for a given time."""

    lasts_ms: int
    over: str  # one of CARRIERS
    deadline_ms: int

    @property
    def own(self) -> str:
        return f"{TESTCASE}:{shown_time(self.lasts_ms)}:{self.over}:{shown_time(self.deadline_ms)}"

    @property
    def own_title(self) -> str:
        return f"frames for {shown_time(self.lasts_ms)} over {self.over}, {shown_time(self.deadline_ms)} each"

    @property
    def testcase(self) -> str:
        return TESTCASE

    @property
    def requests(self) -> tuple[str, ...]:
        return tuple(f"/{name}" for name, _ in self._frames())

    @property
    def files(self) -> Mapping[str, int]:
        return dict(self._frames())

    @property
    def measured_bytes(self) -> int:
        return 0

    @property
    def frames(self) -> BundleFrameStream:
        return BundleFrameStream(interval_us=INTERVAL_US, deadline_ms=self.deadline_ms, over=self.over)

    @property
    def least_ms(self) -> int:
        return self.lasts_ms + self.deadline_ms

    def _frames(self) -> Iterator[tuple[str, int]]:
        """The files of frames and their bytes."""
        for number in range(self.lasts_ms * 1000 // INTERVAL_US):
            size = OTHER_BYTES if number % GROUP else FIRST_BYTES
            yield f"frame-{number}-{size}.bin", size


def parse(name: str, value: str, where: str, flows: tuple[str, ...]) -> FrameViewing | None:
    """The workload `name:value`, if it is of this kind."""
    if name != TESTCASE:
        return None
    time, _, rest = (part.strip() for part in value.partition(":"))
    over, _, deadline = (part.strip() for part in rest.partition(":"))
    if not time:
        raise UsageError(f"{where} has no time", f"write {TESTCASE}:30s:{CARRIERS[0]}")
    if over not in CARRIERS:
        raise UsageError(f'{where}: "{over}" carries no frames', one_of(over, CARRIERS, "carriers"))
    lasts_ms = milliseconds(time, where)
    if not INTERVAL_US // 1000 < lasts_ms <= _LONGEST_MS:
        raise UsageError(f"{where}: {time} is no time for frames", "write 34ms to 60s")
    deadline_ms = milliseconds(deadline, where) if deadline else DEADLINE_MS
    if not 1 <= deadline_ms <= _LONGEST_DEADLINE_MS:
        hint = (
            "write 1ms to 25s: the connection is idle for so long at the end, and stacks close one after 30 s"
        )
        raise UsageError(f"{where}: {deadline} is no deadline", hint)
    return FrameViewing(lasts_ms, over, deadline_ms, flows=flows)


KIND = Kind((TESTCASE,), parse, {TESTCASE: TestCase(protocols=("hq-interop",))})
