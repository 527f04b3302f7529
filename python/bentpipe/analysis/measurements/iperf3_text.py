"""The output of iperf3: a line for each interval, of each stream and, where there are several, of their sum.

    [  5]   1.00-2.00   sec  6.25 MBytes  52.4 Mbits/sec    2    212 KBytes

Lines of iperf 2 are the same. The summary behind the rule of dashes is left out. Rates in bits count by
thousands, those in bytes (`--format M`) by 1024. The direction is that of `iperf3_json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bentpipe.analysis.losses import Direction
from bentpipe.analysis.measurements import numbers
from bentpipe.analysis.measurements.iperf3_json import notes
from bentpipe.analysis.measurements.time_series import Measured, Reading, TimeSeries
from bentpipe.errors import UsageError

NAME = "a log of iperf3"
_LINE = re.compile(
    r"\[ *(?P<id>[0-9]{1,6}|SUM)\](?:\[(?P<role>[TR]X)-[CS]\])?"
    r" +(?P<start>[0-9.]{1,20}) ?- ?(?P<end>[0-9.]{1,20})"
    r" +sec +[0-9.]+ +[KMGT]?Bytes +(?P<rate>\S+) +(?P<unit>[KMGT]?(?:bits|Bytes))/sec(?P<rest>.*)$"
)
_RULE = re.compile(r"^(?:.*\s)?-( -){5,}")
_FACTORS = {
    **{f"{prefix}bits": 1000**power for power, prefix in enumerate(("", "K", "M", "G", "T"))},
    **{f"{prefix}Bytes": 8 * 1024**power for power, prefix in enumerate(("", "K", "M", "G", "T"))},
}
_HINT = "a line is [  5]   1.00-2.00   sec  6.25 MBytes  52.4 Mbits/sec"
_SEVERAL = "cut the file to a single test, or log it with iperf3 --json"


class _Row(NamedTuple):
    line: int
    stream: str
    role: str
    start_ns: int
    end_ns: int
    rate_bps: int


def recognises(lines: Sequence[str]) -> bool:
    """Whether these first lines are of iperf."""
    return any(_LINE.search(line) for line in lines)


def read(file: str, lines: Sequence[str]) -> Reading:
    """The rates. UsageError if there are none, or they are of several tests."""
    rows = list(_rows(file, lines))
    if not rows:
        raise UsageError(f"{file}: no line with an interval", _HINT)
    reverse = any("Reverse mode" in line or "is sending" in line for line in lines)
    ways: dict[str, Direction] = {"": "forward" if reverse else "return", "TX": "return", "RX": "forward"}
    measured = []
    for role in sorted({one.role for one in rows}):
        of_role = [one for one in rows if one.role == role]
        streams = sorted({one.stream for one in of_role})
        stream = "SUM" if "SUM" in streams else streams[0]
        if stream != "SUM" and len(streams) > 1:
            line = next(one.line for one in of_role if one.stream != stream)
            raise numbers.bad(file, f"line {line}", lines[line - 1], "is of another test", _SEVERAL)
        measured.append(_rate(file, lines, [one for one in of_role if one.stream == stream], ways[role]))
    is_udp = any("Jitter" in line or "Lost/Total" in line for line in lines)
    return Reading(file, NAME, tuple(measured), notes("UDP" if is_udp else "TCP"))


def _rows(file: str, lines: Sequence[str]) -> Iterator[_Row]:
    for line, text in enumerate(lines, start=1):
        if _RULE.match(text):
            return
        match = _LINE.search(text)
        if match is None or "(omitted)" in match["rest"]:
            continue
        place = f"line {line}"
        start, end = (
            numbers.time(numbers.number(match[name], file, place, _HINT), 10**9, file, place)
            for name in ("start", "end")
        )
        rate = numbers.number(match["rate"], file, place, _HINT)
        bps = numbers.whole(rate, _FACTORS[match["unit"]], "rate", file, place)
        yield _Row(line, match["id"], match["role"] or "", start, end, bps)


def _rate(file: str, lines: Sequence[str], rows: Sequence[_Row], way: Direction) -> Measured:
    times: list[int] = []
    for row in rows:
        times.append(row.start_ns)
        if row.end_ns <= row.start_ns or (len(times) > 1 and times[-1] <= times[-2]):
            text = lines[row.line - 1]
            raise numbers.bad(file, f"line {row.line}", text, "is not after the one before", _SEVERAL)
        numbers.check_times(file, times, f"line {row.line}", lines[row.line - 1])
    return Measured("rate", TimeSeries.of(times, [row.rate_bps for row in rows], rows[-1].end_ns), way)
