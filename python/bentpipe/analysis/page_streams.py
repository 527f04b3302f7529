"""The packets that carried a page's responses, by their streams: which of them were lost, and when.

Over HTTP/3 each request has a stream of its own. Clients that go by the contract open them as they ask: of
requests at one time the most urgent first, then in the order of the page. Nothing is said of any where one
carried less than its resource, or more than HTTP/3 adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bentpipe.analysis import traces
from bentpipe.runs import trial_files
from bentpipe.schema.requests import PageRequest

_BOTH_WAYS = 4  # stream IDs of a client's bidirectional streams are its multiples (RFC 9000, section 2.1)
_LOST = ("queue_drop", "loss", "not_received")
_COLUMNS = ["connection", "sender", "stream_id", "stream_offset", "stream_bytes", "sent_s", "fate", "copy"]


@dataclass
class StreamPackets:
    """The packets of a stream that the server sent: how many, how long the stream is by them, in bytes, and
    when those left that never arrived, in seconds from the client's first packet.
    """

    packets: int = 0
    length: int = 0
    lost_s: list[float] = field(default_factory=list)


def of_requests(folder: Path, requests: Sequence[PageRequest]) -> list[StreamPackets] | None:
    """The packets of each request's stream of the trial in `folder`, on the client's hop. None where its
    trace was not analysed, or streams cannot be matched to requests. Errors are those of `traces.of_folder`.
    """
    if not (folder / trial_files.PACKETS).is_file():
        return None
    analysis = traces.of_folder(folder)
    number = _connection(analysis)
    if number is None:
        return None
    rows = analysis.read_packets(_COLUMNS, number).to_pylist()
    began = min((row["sent_s"] for row in rows if row["sender"] == "client"), default=0.0)
    by_stream: dict[int, StreamPackets] = {}
    for row in rows:
        if row["sender"] != "server" or row["copy"]:
            continue
        for stream in set(row["stream_id"]):
            found = by_stream.setdefault(stream, StreamPackets())
            found.packets += 1
            if row["fate"] in _LOST:
                found.lost_s.append(row["sent_s"] - began)
        parts = zip(row["stream_id"], row["stream_offset"], row["stream_bytes"], strict=True)
        for stream, offset, count in parts:
            found = by_stream[stream]
            found.length = max(found.length, offset + count)
    return _matched(requests, by_stream)


def _connection(analysis: traces.Analysis) -> int | None:
    """The connection of the trial's first flow that its page came over: on a later visit the last one."""
    return max((one.connection for one in analysis.of_first_flow()), default=None)


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
        if not least <= carried.length <= one.bytes + _most_framing(one.bytes):
            return None
        found[number] = carried
    return found


def _most_framing(size: int) -> int:
    """Bytes that HTTP/3 adds to a body, at most: headers, and the heads of frames."""
    return 300 + size // 500
