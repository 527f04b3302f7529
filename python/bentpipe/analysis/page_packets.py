"""What the packets of a page carried, and what had to wait at the client for what was missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bentpipe.analysis import traces
from bentpipe.runs import trial_files

_COLUMNS = [
    "connection", "sender", "stream_id", "stream_offset", "stream_bytes", "sent_s", "received_s", "copy",
]  # fmt: skip


@dataclass(frozen=True)
class Hold:
    """A time in which bytes of a stream had come, and an earlier part had not, in seconds of the trace."""

    begin_s: float
    end_s: float
    most_bytes: int  # that waited at one time


@dataclass(frozen=True)
class ConnectionPackets:
    """What came to the client on a connection."""

    began_s: float
    response_bytes: int  # of its streams
    holds: Sequence[Hold]


def of_connections(folder: Path, *, is_later_visit: bool) -> list[ConnectionPackets] | None:
    """The connections of the page of the trial in `folder`, on the client's hop; on a later visit those that
    began when something had come of the earlier one. None where its trace was not analysed, or its streams
    cannot be read. Errors are those of `traces.of_folder`.
    """
    if not (folder / trial_files.PACKETS).is_file():
        return None
    analysis = traces.of_folder(folder)
    own = {one.connection for one in analysis.summary.connections if one.client.startswith(traces.FIRST_FLOW)}
    rows = [row for row in analysis.read_packets(_COLUMNS).to_pylist() if row["connection"] in own]
    return connections_of(rows, is_later_visit=is_later_visit)


def connections_of(
    packets: Iterable[Mapping[str, Any]], *, is_later_visit: bool
) -> list[ConnectionPackets] | None:
    """Those of packets as rows of `packets.parquet` have them."""
    by_connection: dict[int, list[Mapping[str, Any]]] = {}
    for row in packets:
        if not row["copy"]:
            by_connection.setdefault(row["connection"], []).append(row)
    began = {number: min(row["sent_s"] for row in rows) for number, rows in by_connection.items()}
    came = {number: _came(rows) for number, rows in by_connection.items()}
    firsts = [rows[0]["received_s"] for rows in came.values() if rows]
    if not firsts:
        return None
    return [
        ConnectionPackets(began[number], _bytes(came[number]), _holds(came[number]))
        for number in began
        if not is_later_visit or began[number] > min(firsts)
    ]


def _came(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The server's packets with parts of streams that arrived, in the order of arrival."""
    found = [
        row
        for row in rows
        if row["sender"] == "server" and row["received_s"] is not None and row["stream_id"]
    ]
    return sorted(found, key=lambda row: row["received_s"])


def _bytes(came: Iterable[Mapping[str, Any]]) -> int:
    ends: dict[int, int] = {}
    for row in came:
        for stream, offset, count in _parts(row):
            ends[stream] = max(ends.get(stream, 0), offset + count)
    return sum(ends.values())


def _holds(came: Iterable[Mapping[str, Any]]) -> list[Hold]:
    streams: dict[int, _Reassembly] = {}
    for row in came:
        for stream, offset, count in _parts(row):
            streams.setdefault(stream, _Reassembly()).take(row["received_s"], offset, count)
    return [hold for one in streams.values() for hold in one.holds]


def _parts(row: Mapping[str, Any]) -> Iterable[tuple[int, int, int]]:
    return zip(row["stream_id"], row["stream_offset"], row["stream_bytes"], strict=True)


@dataclass
class _Reassembly:
    """A stream as its receiver puts it together."""

    next: int = 0  # all before it has come
    waiting: list[tuple[int, int]] = field(default_factory=list)  # offset, end; behind a part that is missing
    since_s: float = 0.0
    most: int = 0
    holds: list[Hold] = field(default_factory=list)

    def take(self, at_s: float, offset: int, count: int) -> None:
        if not self.waiting:
            self.since_s, self.most = at_s, 0
        self.waiting = sorted([*self.waiting, (offset, offset + count)])
        while self.waiting and self.waiting[0][0] <= self.next:
            self.next = max(self.next, self.waiting.pop(0)[1])
        if self.waiting:
            self.most = max(self.most, self._held())
        elif self.most:
            self.holds.append(Hold(self.since_s, at_s, self.most))
            self.most = 0

    def _held(self) -> int:
        held, end = 0, 0
        for offset, until in self.waiting:
            held += max(0, until - max(offset, end))
            end = max(end, until)
        return held
