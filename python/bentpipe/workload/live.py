"""Workloads that are live streams: `live:60s:h3` is a minute of one, in segments, each at four rates.

Which of these a client asks for, and when, says `endpoints/contract/media.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bentpipe.errors import UsageError
from bentpipe.schema.bundle import BundleLiveStream
from bentpipe.workload.http import DEFAULT_VERSION, TITLES, UPGRADE, VERSIONS, HttpWorkload, check
from bentpipe.workload.model import Kind
from bentpipe.workload.testcase import TestCase
from bentpipe.workload.units import milliseconds, shown_time

TESTCASE = "live"
SEGMENT_MS = 2000
# A player begins no nearer to what is made now than three segments (RFC 8216, section 6.3.3).
INITIAL_SEGMENTS = 3
RATES_BPS = (600_000, 1_500_000, 3_000_000, 6_000_000)
# All requests stand in one variable of the environment in socket mode, which Linux keeps below 128 KiB.
_LONGEST_MS = 600_000


@dataclass(frozen=True)
class LiveSession(HttpWorkload):
    """A live stream that is watched for a given time."""

    lasts_ms: int

    @property
    def own(self) -> str:
        return f"{TESTCASE}:{shown_time(self.lasts_ms)}:{self.http}"

    @property
    def own_title(self) -> str:
        return f"live stream of {shown_time(self.lasts_ms)} over {TITLES[self.http]}"

    @property
    def testcase(self) -> str:
        return TESTCASE

    @property
    def requests(self) -> tuple[str, ...]:
        return tuple(f"/{name}" for name, _ in self._segments())

    @property
    def files(self) -> Mapping[str, int]:
        return dict(self._segments())

    @property
    def measured_bytes(self) -> int:
        return 0

    @property
    def live(self) -> BundleLiveStream:
        return BundleLiveStream(
            segment_ms=SEGMENT_MS, initial_segments=INITIAL_SEGMENTS, rates_bps=list(RATES_BPS)
        )

    @property
    def least_ms(self) -> int:
        return self.lasts_ms - INITIAL_SEGMENTS * SEGMENT_MS

    def _segments(self) -> Iterator[tuple[str, int]]:
        """The files of segments and their bytes, each at every rate, the lowest first."""
        for number in range(self.lasts_ms // SEGMENT_MS):
            for rate_bps in RATES_BPS:
                size = rate_bps * SEGMENT_MS // 8000
                yield f"live-{number}-{size}.mp4", size


def parse(name: str, value: str, where: str, flows: tuple[str, ...]) -> LiveSession | None:
    """The workload `name:value`, if it is of this kind."""
    if name != TESTCASE:
        return None
    time, _, http = (part.strip() for part in value.partition(":"))
    if not time:
        raise UsageError(f"{where} has no time", f"write {TESTCASE}:60s")
    check(http or DEFAULT_VERSION, where)
    lasts_ms = milliseconds(time, where)
    if not SEGMENT_MS <= lasts_ms <= _LONGEST_MS or lasts_ms % SEGMENT_MS:
        whole = f"whole segments of {shown_time(SEGMENT_MS)}, ten minutes at most"
        raise UsageError(f"{where}: {time} is not {whole}", f"write {TESTCASE}:60s")
    return LiveSession(http or DEFAULT_VERSION, lasts_ms, flows=flows)


KIND = Kind(
    (TESTCASE,),
    parse,
    {TESTCASE: TestCase(protocols=tuple(alpn for alpn in VERSIONS.values() if alpn != UPGRADE))},
)
