"""The packets of a page, and the data that had to wait at the client for missing packets."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from bentpipe.analysis import traces
from bentpipe.runs import trial_files

_COLUMNS = [
    "connection", "protocol", "sender", "stream_id", "stream_offset", "stream_bytes", "sent_s", "received_s",
    "copy",
]  # fmt: skip
_BOTH_WAYS = 4  # stream IDs of a client's bidirectional streams are its multiples (RFC 9000, section 2.1)

_ROUNDED_S = 1e-6

Row = Mapping[str, Any]  # of `packets.parquet`


@dataclass(frozen=True)
class StreamBlocking:
    """A time in which bytes of a stream had arrived, and an earlier part had not, in seconds of one clock."""

    begin_s: float
    end_s: float
    most_bytes: int  # that waited at one time


@dataclass(frozen=True)
class ConnectionPackets:
    """The data that reached the client on a connection."""

    began_s: float
    response_bytes: int  # of streams that the client opened
    holds: Sequence[StreamBlocking]


def of_connections(folder: Path, *, is_later_visit: bool) -> list[ConnectionPackets] | None:
    """The connections of the page of the trial in `folder`, on the client's hop; on a later visit those that
    began when something of the earlier one had arrived. None where its trace was not analysed, or its streams
    cannot be read. Errors are those of `traces.of_folder`.
    """
    if not (folder / trial_files.PACKETS).is_file():
        return None
    analysis = traces.of_folder(folder)
    # Times of packets count from the first one of their connection.
    unix = {one.connection: Decimal(one.start_unix_s) for one in analysis.of_first_flow()}
    zero = min(unix.values(), default=Decimal(0))
    starts = {number: float(start - zero) for number, start in unix.items()}
    return connections_of(analysis.read_packets(_COLUMNS).to_pylist(), starts, is_later_visit=is_later_visit)


def connections_of(
    packets: Iterable[Row], starts_s: Mapping[int, float], *, is_later_visit: bool
) -> list[ConnectionPackets] | None:
    """The connections that began at `starts_s`, of packets as rows of `packets.parquet`."""
    arrived: dict[int, list[Row]] = {number: [] for number in starts_s}
    for row in packets:
        if row["connection"] in arrived and _has_arrived(row):
            arrived[row["connection"]].append(row)
    of = {number: _ConnectionRows(starts_s[number], rows) for number, rows in arrived.items()}
    firsts = [one.first_s for one in of.values() if one.rows]
    if not firsts:
        return None
    return [
        ConnectionPackets(one.start_s, one.response_bytes(), one.holds())
        for one in sorted(of.values(), key=lambda one: one.start_s)
        if not is_later_visit or one.start_s >= min(firsts) - _ROUNDED_S
    ]


def _has_arrived(row: Row) -> bool:
    """Whether it is a packet of the server's with parts of streams, and arrived."""
    is_servers = row["sender"] == "server" and not row["copy"]
    return is_servers and row["received_s"] is not None and any(row["stream_bytes"] or ())


class _ConnectionRows:
    """The packets of a connection that arrived to the client, in the order of arrival."""

    def __init__(self, start_s: float, rows: Iterable[Row]) -> None:
        self.start_s = start_s
        self.rows = sorted(rows, key=lambda row: row["received_s"])

    @property
    def first_s(self) -> float:
        return self.start_s + float(self.rows[0]["received_s"])

    def response_bytes(self) -> int:
        ends: dict[int, int] = {}
        for row in self.rows:
            for stream, offset, count in _parts(row):
                if row["protocol"] != "quic" or stream % _BOTH_WAYS == 0:
                    ends[stream] = max(ends.get(stream, 0), offset + count)
        return sum(ends.values())

    def holds(self) -> list[StreamBlocking]:
        streams: dict[int, _Reassembly] = {}
        for row in self.rows:
            for stream, offset, count in _parts(row):
                at_s = self.start_s + row["received_s"]
                streams.setdefault(stream, _Reassembly()).take(at_s, offset, offset + count)
        return [hold for one in streams.values() for hold in one.holds]


def _parts(row: Row) -> Iterable[tuple[int, int, int]]:
    return zip(row["stream_id"], row["stream_offset"], row["stream_bytes"], strict=True)


@dataclass
class _Reassembly:
    """A stream as its receiver puts it together."""

    next: int = 0  # everything before it has arrived
    waiting: list[tuple[int, int]] = field(default_factory=list)  # disjoint, in order, behind a missing part
    held: int = 0  # bytes of these
    since_s: float = 0.0
    most: int = 0
    holds: list[StreamBlocking] = field(default_factory=list)

    def take(self, at_s: float, begin: int, end: int) -> None:
        """Add the part from `begin` to `end`."""
        if not self.waiting:
            self.since_s, self.most = at_s, 0
        self._keep(max(begin, self.next), end)
        while self.waiting and self.waiting[0][0] <= self.next:
            begin, self.next = self.waiting.pop(0)
            self.held -= self.next - begin
        self.most = max(self.most, self.held)
        if not self.waiting and self.most:
            self.holds.append(StreamBlocking(self.since_s, at_s, self.most))
            self.most = 0

    def _keep(self, begin: int, end: int) -> None:
        """Add a part, and unite it with those that it meets."""
        place = bisect.bisect_left(self.waiting, (begin, begin))
        if place and self.waiting[place - 1][1] >= begin:
            place -= 1
        while place < len(self.waiting) and self.waiting[place][0] <= end:
            other = self.waiting.pop(place)
            self.held -= other[1] - other[0]
            begin, end = min(begin, other[0]), max(end, other[1])
        if end > begin:
            self.waiting.insert(place, (begin, end))
            self.held += end - begin
