"""iperf3's JSON: `iperf3 --json`.

`intervals` has the sum of all streams in each interval. A test without `--reverse` is an upload, of the
return path; with `--reverse` it is of the forward path; with `--bidir` there are both. What is omitted
(`--omit`) is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bentpipe.analysis.losses import Direction
from bentpipe.analysis.measurements import numbers
from bentpipe.analysis.measurements.json_file import decoded
from bentpipe.analysis.measurements.time_series import Measured, Reading, TimeSeries
from bentpipe.errors import UsageError

NAME = "a JSON file of iperf3"
HINT = "give what iperf3 --json --logfile FILE writes"
NOTE = "What a transfer of iperf3 got is taken for the link's rate: it was the only one, and filled the link."


class IntervalSum(msgspec.Struct):
    start: float
    end: float
    bits_per_second: float
    omitted: bool = False


class Interval(msgspec.Struct):
    sum: IntervalSum
    sum_bidir_reverse: IntervalSum | None = None


class IperfTest(msgspec.Struct):
    protocol: str = "TCP"
    reverse: int = 0


class Start(msgspec.Struct):
    test_start: IperfTest = msgspec.field(default_factory=IperfTest)


class Iperf3File(msgspec.Struct):
    intervals: list[Interval]
    start: Start = msgspec.field(default_factory=Start)
    error: str = ""


def read(file: str, content: bytes) -> Reading:
    """The rates. UsageError, naming the key, if the file is not as iperf3 writes it."""
    found = decoded(file, content, Iperf3File, HINT)
    if not found.intervals:
        why = f": iperf3 failed: {numbers.printable(found.error)}" if found.error else ""
        raise UsageError(f"{file}: intervals: is empty{why}", HINT)
    own: Direction = "forward" if found.start.test_start.reverse else "return"
    measured = [_rate(file, [one.sum for one in found.intervals], "sum", own)]
    back = [one.sum_bidir_reverse for one in found.intervals if one.sum_bidir_reverse is not None]
    if back:
        measured.append(_rate(file, back, "sum_bidir_reverse", "forward"))
    return Reading(file, NAME, tuple(measured), notes(found.start.test_start.protocol))


def notes(protocol: str) -> tuple[str, ...]:
    if protocol.upper() == "UDP":
        return (NOTE, "iperf3 sent UDP at a rate of its own: the link had at least that.")
    return (NOTE,)


def _rate(file: str, sums: Sequence[IntervalSum], name: str, way: Direction) -> Measured:
    times: list[int] = []
    values: list[int] = []
    end = 0
    for index, one in enumerate(sums):
        if one.omitted:
            continue
        key = f"intervals.{index}.{name}"
        times.append(numbers.time(one.start, 10**9, file, f"{key}.start"))
        numbers.check_times(file, times, f"{key}.start", one.start)
        end = numbers.time(one.end, 10**9, file, f"{key}.end")
        if end <= times[-1]:
            raise numbers.bad(file, f"{key}.end", one.end, "is not after its start", HINT)
        values.append(numbers.whole(one.bits_per_second, 1, "rate", file, f"{key}.bits_per_second"))
    if not times:
        raise UsageError(f"{file}: intervals: all are omitted", HINT)
    return Measured("rate", TimeSeries.of(times, values, end), way)
