"""The ideal sender of records and figures: it waits for handshake and request, then fills the link.

Model: as `limit_s` of a record (`crates/link/src/ideal.rs`), of which `tests/python/test_ideal_sender.py`
holds that it is the same.
"""

from __future__ import annotations

from bentpipe.workload import TESTCASES

HEADERS = 1.05  # bytes on the link per byte of a file: 5 % are headers


def round_trips(testcase: str, transport: str = "quic", saved: int = 0) -> tuple[float, float]:
    """Round trips of the ideal sender before the first byte of files arrives, and after the last; `saved` as
    in records.
    """
    found = TESTCASES[testcase]
    return found.before_first(transport, saved), found.after


def curve(
    testcase: str, size_bytes: int, limit_s: float, rtt_s: float, transport: str = "quic", saved: int = 0
) -> list[tuple[float, float]] | None:
    """The bytes that the ideal sender has delivered, with headers, as (seconds, bytes): nothing until
    handshake and request have had their round trips, then files and headers at the link's rate, or the mean
    of one that changes. None if its time is too short for that.
    """
    before, after = round_trips(testcase, transport, saved)
    begin, end = before * rtt_s, limit_s - after * rtt_s
    if begin > end:
        return None
    return [(0, 0), (begin, 0), (end, round(size_bytes * HEADERS))]
