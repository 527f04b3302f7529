"""Captures of both ends of a path: what arrived when, of what was sent when.

Of the connection with the most packets, in windows of `--every`, 100 ms by default. Packets waited in a queue
if the median of their delays is above the least of all by a twentieth and by 2 ms. The rate is what arrived
in a window whose arrivals had waited; in the others nobody asked for all of it, and that of the window before
holds. Where nothing ever waited, the fullest window counts, which is the least that the link has. Delay and
loss are of what was sent in a window, which arrives in later ones. The delay is the least where nothing
waited; else that of the window before holds. The loss is the share that did not arrive, without what a queue
dropped, where the capture says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bentpipe.analysis import traces
from bentpipe.analysis.losses import DIRECTIONS, Direction
from bentpipe.analysis.measurements.time_series import Measured, Reading, TimeSeries
from bentpipe.errors import UsageError

NAME = "captures of both ends"
WINDOW_NS = 100 * 10**6
_MAGICS = (
    b"\x0a\x0d\x0d\x0a",
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
)
_COLUMNS = ["direction", "sent_s", "received_s", "ip_bytes", "copy", "fate"]
_BOTH = "give the capture of the client's side and that of the server's, with clocks that agree"
_WAITED_NS = 2 * 10**6
_WAITED_SHARE = 20
_MOST_WINDOWS = 1_000_000


class SentPacket(NamedTuple):
    """A packet that was sent."""

    sent_ns: int
    received_ns: int | None
    bytes: int


def recognises(content: bytes) -> bool:
    """Whether a file begins as pcap or pcapng do."""
    return content.startswith(_MAGICS)


def read(files: Sequence[Path], every_ns: int | None) -> Reading:
    """Rates, delays and losses of both directions. UsageError if the captures are not of both ends."""
    name = ", ".join(map(str, files))
    window = every_ns or WINDOW_NS
    analysis = traces.analyse(files, traces.temporary())
    connection = analysis.connection()
    packets: dict[Direction, list[SentPacket]] = {way: [] for way in DIRECTIONS}
    table = analysis.read_packets(_COLUMNS, connection.connection)
    for row in table.to_pylist():
        is_known = row["sent_s"] is not None and row["ip_bytes"] is not None and not row["copy"]
        if is_known and row["fate"] != "queue_drop":
            received = row["received_s"]
            packets[row["direction"]].append(
                SentPacket(_ns(row["sent_s"]), None if received is None else _ns(received), row["ip_bytes"])
            )
    measured: list[Measured] = []
    notes = [f"Windows of {window / 1e6:g} ms (--every) of the connection of {connection.client}."]
    notes += [f"Not all was read: {error}" for error in analysis.summary.errors]
    for way in DIRECTIONS:
        if not any(one.received_ns is not None for one in packets[way]):
            raise UsageError(f"{name}: no packet was seen at both ends {way}", _BOTH)
    count = max(one.sent_ns for of_way in packets.values() for one in of_way) // window + 1
    if count > _MOST_WINDOWS:
        raise UsageError(f"--every: more than {_MOST_WINDOWS} windows", "give a longer one")
    for way in DIRECTIONS:
        measured += _of_way(name, packets[way], way, _Windows(window, count), notes)
    waits = "Delays above the least by a twentieth and 2 ms are taken for waiting in a queue"
    notes.append(f"{waits}: the delay of the window before holds then.")
    return Reading(name, NAME, tuple(measured), tuple(notes), used=frozenset({"--every"}))


@dataclass(frozen=True)
class _Windows:
    length_ns: int
    count: int


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _of_way(
    name: str, packets: Sequence[SentPacket], way: Direction, windows: _Windows, notes: list[str]
) -> Iterator[Measured]:
    window, count = windows.length_ns, windows.count
    sent: list[list[SentPacket]] = [[] for _ in range(count)]
    arrived: list[list[SentPacket]] = [[] for _ in range(count)]
    for one in packets:
        sent[max(one.sent_ns, 0) // window].append(one)
        if one.received_ns is not None and one.received_ns // window < count:
            arrived[max(one.received_ns, 0) // window].append(one)
    delays = [_delays(each) for each in sent]
    least = min(each[0] for each in delays if each)
    if least <= 0:
        raise UsageError(f"{name}: a packet arrived {way} before it was sent: clocks differ", _BOTH)
    times = [index * window for index in range(count)]
    end = count * window
    limit = least + max(least // _WAITED_SHARE, _WAITED_NS)
    free = [each[0] if each and not _waited(each, limit) else None for each in delays]
    held = _held(free) if any(free) else [least] * count
    yield Measured("delay", TimeSeries.of(times, held, end), way)
    rates = [8 * sum(one.bytes for one in each) * 10**9 // window for each in arrived]
    busy = [
        rate if _waited(_delays(each), limit) else None for rate, each in zip(rates, arrived, strict=True)
    ]
    if any(busy):
        notes.append(
            f"The {way} rate is what arrived in the {sum(map(bool, busy))} of {count} windows in which "
            "packets waited; in the others, that of the one before."
        )
        yield Measured("rate", TimeSeries.of(times, _held(busy), end), way)
    else:
        notes.append(
            f"No packet waited {way}: the rate is that of the fullest window; the link has at least that "
            "(--rate)."
        )
        yield Measured("rate", TimeSeries.of([0], [max(rates)], end), way)
    lost = [sum(one.received_ns is None for one in each) for each in sent]
    if any(lost):
        notes.append(
            f"{sum(lost)} of {len(packets)} packets did not arrive {way}; those that a queue is known "
            "to have dropped do not count."
        )
        ratios = [gone * 10**9 // len(each) if each else 0 for gone, each in zip(lost, sent, strict=True)]
        yield Measured("loss", TimeSeries.of(times, ratios, end), way)


def _delays(packets: Sequence[SentPacket]) -> list[int]:
    """The delays of those that arrived, the least first."""
    return sorted(one.received_ns - one.sent_ns for one in packets if one.received_ns is not None)


def _waited(delays: Sequence[int], limit: int) -> bool:
    """Whether the median of these is above the limit."""
    return bool(delays) and delays[len(delays) // 2] > limit


def _held(values: Sequence[int | None]) -> list[int]:
    """Each value, or the one before where there is none; before the first, that."""
    last = next(value for value in values if value is not None)
    found = []
    for value in values:
        last = last if value is None else value
        found.append(last)
    return found
