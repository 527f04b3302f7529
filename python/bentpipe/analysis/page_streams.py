"""The packets that carried a page's responses, by their streams: which of them were lost, and when.

Over HTTP/3 each request has a stream of its own, and streams are opened in the order of asking: of requests
at one time the most urgent first, then that of the page (contract, section 2). Where what a stream carried
does not fit its resource, nothing is said of any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bentpipe.runs import trial_files
from bentpipe.schema.requests import PageRequest

_BOTH_WAYS = 4  # stream IDs of a client's bidirectional streams are its multiples (RFC 9000, section 2.1)
_MOST_FRAMING = 1000  # bytes of HTTP/3's headers and frames around a body, at most
_LOST = ("queue_drop", "loss", "not_received")
_COLUMNS = ["connection", "sender", "stream_id", "stream_offset", "stream_bytes", "sent_s", "fate"]


@dataclass
class StreamPackets:
    """The packets of a stream that the server sent: how many, how long the stream is by them, in bytes, and
    when those left that never arrived, in seconds from the client's first packet.
    """

    packets: int = 0
    length: int = 0
    lost_s: list[float] = field(default_factory=list)


def of_requests(folder: Path, requests: Sequence[PageRequest]) -> list[StreamPackets] | None:
    """Those of each request of the trial in `folder`, whose trace has been analysed. None where it was not,
    and where it cannot be told which stream is whose.
    """
    file = folder / trial_files.PACKETS
    if not file.is_file():
        return None
    import pyarrow.parquet as pq  # takes long

    rows = pq.read_table(file, columns=_COLUMNS).to_pylist()
    # On a later visit the first connection is that of the earlier one.
    number = max((row["connection"] for row in rows), default=0)
    rows = [row for row in rows if row["connection"] == number]
    began = min((row["sent_s"] for row in rows if row["sender"] == "client"), default=0.0)
    by_stream: dict[int, StreamPackets] = {}
    for row in rows:
        if row["sender"] != "server":
            continue
        parts = zip(row["stream_id"], row["stream_offset"], row["stream_bytes"], strict=True)
        for stream, offset, count in parts:
            found = by_stream.setdefault(stream, StreamPackets())
            found.packets += 1
            found.length = max(found.length, offset + count)
            if row["fate"] in _LOST:
                found.lost_s.append(row["sent_s"] - began)
    return _matched(requests, by_stream)


def _matched(
    requests: Sequence[PageRequest], by_stream: dict[int, StreamPackets]
) -> list[StreamPackets] | None:
    def asked(number: int) -> tuple[float, int, int]:
        return requests[number].asked_s or 0.0, requests[number].urgency, number

    numbers = [number for number, one in enumerate(requests) if one.asked_s is not None]
    found = [StreamPackets() for _ in requests]
    for place, number in enumerate(sorted(numbers, key=asked)):
        carried = by_stream.get(_BOTH_WAYS * place, StreamPackets())
        one = requests[number]
        least = 0 if one.last_byte_s is None else one.bytes
        if not least <= carried.length <= one.bytes + _MOST_FRAMING:
            return None
        found[number] = carried
    return found
