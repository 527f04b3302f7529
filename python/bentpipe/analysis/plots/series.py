"""Series: the content of figures, computed from a connection's packets (`packets.parquet`).

Every function takes the packets of one connection (`of_connection`) and a direction, that of the packets
which carry the data, and returns arrays ordered by time. `side` says at which side times are read (see
`table`); without it, at the sender of the data where that was captured, else at the receiver. Seconds count
from the connection's first packet. Words are those of RFC 9000 and RFC 9002. Offset over time is the figure
of the papers on QUIC over satellites; the others are usual for TCP (tcptrace).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bentpipe.analysis.plots.table import (
    OTHER,
    Bools,
    Direction,
    Floats,
    Ints,
    Side,
    best_side,
    flat,
    floats,
    in_direction,
    ints,
    lost,
    of_connection,
    seen,
    texts,
)

__all__ = [
    "Direction", "Side", "best_side", "in_direction", "ints", "of_connection", "seen",
]  # fmt: skip

SHORTEST_BIN_S = 0.05
_PATH = "path "  # the packet number space of a path beside the first: `path 1`


@dataclass(frozen=True)
class OffsetSeries:
    """An entry per STREAM frame. Frames of packets that did not pass the side are left out."""

    time_s: Floats
    start: Ints  # offset of the first byte in its stream
    end: Ints  # offset behind the last byte
    stream: Ints  # its ID
    retransmitted: Bools  # its sender had sent these bytes before
    lost: Bools  # the packet did not arrive
    path: Ints  # the identifier of the path that it took; 0 where there is one


@dataclass(frozen=True)
class ByteCurve:
    """A curve of bytes over time, constant between its times."""

    time_s: Floats
    bytes: Ints


@dataclass(frozen=True)
class NumberSeries:
    """An entry per packet whose number is known, of one packet number space."""

    time_s: Floats
    number: Ints
    lost: Bools


@dataclass(frozen=True)
class SizeSeries:
    """An entry per datagram (TCP: segment)."""

    time_s: Floats
    bytes: Ints  # of the IP packet
    lost: Bools


@dataclass(frozen=True)
class RateSeries:
    """Bytes in bins of equal length; bin k begins at `start_s[k]`."""

    start_s: Floats
    bin_s: float
    raw: Ints  # bytes of IP packets
    payload: Ints  # stream bytes that had not been sent before

    def bps(self, what: Literal["raw", "payload"]) -> Floats:
        """The rate in each bin, in bit/s."""
        counted: Ints = getattr(self, what)
        return counted * 8 / self.bin_s


@dataclass(frozen=True)
class RttSeries:
    """An entry per RTT sample (RFC 9002 §5.1) of the sender of data."""

    time_s: Floats
    rtt_ms: Floats


@dataclass(frozen=True)
class DelaySeries:
    """An entry per packet that was seen at both sides."""

    time_s: Floats
    delay_ms: Floats  # from its sender's side to its receiver's, as true as the two clocks


@dataclass(frozen=True)
class AckSeries:
    """An entry per range of an ACK frame: it acknowledges the packets `first` to `last`."""

    time_s: Floats
    first: Ints
    last: Ints
    highest: Bools  # the range that holds the frame's Largest Acknowledged


def offset(packets: pa.Table, direction: Direction, side: Side | None = None) -> OffsetSeries:
    """Stream offsets over time.

    Of a packet that holds both new and retransmitted bytes, those frames count as retransmitted that end
    below the highest offset sent before on their stream.
    """
    mine = in_direction(packets, direction)
    frames = flat(mine, "stream_id", "stream_offset", "stream_bytes")
    end = frames["stream_offset"] + frames["stream_bytes"]
    again = ints(mine, "retransmitted_bytes")[frames.row]
    whole = np.bincount(frames.row, frames["stream_bytes"], mine.num_rows)[frames.row]
    retransmitted = (again > 0) & ((again >= whole) | (end <= _highest_before(frames["stream_id"], end)))
    time_s = seen(mine, side or best_side(packets, direction))[frames.row]
    keep = _by_time(time_s)
    return OffsetSeries(
        time_s[keep],
        frames["stream_offset"][keep],
        end[keep],
        frames["stream_id"][keep],
        retransmitted[keep],
        lost(mine)[frames.row][keep],
        _paths(mine)[frames.row][keep],
    )


def _paths(packets: pa.Table) -> Ints:
    """The identifiers of the paths in whose packet number spaces the packets are: `path 1` is one of them."""
    names = texts(packets, "space")
    paths: Ints = np.zeros(len(names), dtype=np.int64)
    for name in {str(one) for one in names.tolist()}:
        if name.startswith(_PATH):
            paths[names == name] = int(name.removeprefix(_PATH))
    return paths


def received(packets: pa.Table, direction: Direction) -> ByteCurve:
    """Distinct stream bytes that had reached the receiver, over its time."""
    return _distinct(in_direction(packets, direction), "received_s")


def acknowledged(packets: pa.Table, direction: Direction) -> ByteCurve:
    """Distinct stream bytes that were acknowledged, over the sender's time."""
    return _distinct(in_direction(packets, direction), "acked_s")


def credit(
    packets: pa.Table,
    direction: Direction,
    frame: Literal["max_data", "max_stream_data"] = "max_stream_data",
    side: Side | None = None,
) -> ByteCurve:
    """The flow control limit on the data of `direction` (RFC 9000 §4.1), out of MAX_DATA or MAX_STREAM_DATA
    frames. Limits of the transport parameters are not in it: it begins with the first frame.
    """
    theirs = in_direction(packets, OTHER[direction])
    time_s = seen(theirs, side or best_side(packets, direction))
    limit = ints(theirs, frame, null=-1)
    keep = _by_time(np.where(limit >= 0, time_s, np.nan))
    highest: Ints = np.maximum.accumulate(limit[keep])
    new = np.diff(highest, prepend=-1) > 0
    return ByteCurve(time_s[keep][new], highest[new])


def numbers(
    packets: pa.Table, direction: Direction, side: Side | None = None, space: str = "application"
) -> NumberSeries:
    """Packet numbers over time, of one packet number space. TCP's segments are in `application`."""
    mine = in_direction(packets, direction)
    number = ints(mine, "number", null=-1)
    known = (number >= 0) & _in_space(mine, space)
    time_s = seen(mine, side or best_side(packets, direction))
    keep = _by_time(np.where(known, time_s, np.nan))
    return NumberSeries(time_s[keep], number[keep], lost(mine)[keep])


def sizes(packets: pa.Table, direction: Direction, side: Side | None = None) -> SizeSeries:
    """Sizes of IP packets over time."""
    mine = in_direction(packets, direction)
    size = ints(mine, "ip_bytes")
    time_s = seen(mine, side or best_side(packets, direction))
    keep = _by_time(np.where(size > 0, time_s, np.nan))
    return SizeSeries(time_s[keep], size[keep], lost(mine)[keep])


def bin_for(rtt_s: float) -> float:
    """The length of a bin for rates: a quarter of a round trip, and at least 50 ms."""
    return max(rtt_s / 4, SHORTEST_BIN_S)


def rate(packets: pa.Table, direction: Direction, bin_s: float, side: Side | None = None) -> RateSeries:
    """Bytes per bin, from time 0 to the last packet of either direction (from the first one, if clocks differ
    and it is before 0). Every byte that passed the side is in exactly one bin.
    """
    mine = in_direction(packets, direction)
    side = side or best_side(packets, direction)
    everything = seen(packets, side)
    first = int(np.floor_divide(np.nanmin(everything, initial=0.0), bin_s))
    last = int(np.floor_divide(np.nanmax(everything, initial=0.0), bin_s))
    time_s = seen(mine, side)
    keep = ~np.isnan(time_s)
    bins = np.floor_divide(time_s[keep], bin_s).astype(np.int64) - first
    count = last - first + 1

    def binned(bytes_: Ints) -> Ints:
        total = np.zeros(count, np.int64)
        np.add.at(total, bins, bytes_[keep])
        return total

    return RateSeries(
        np.arange(first, last + 1, dtype=np.float64) * bin_s,
        bin_s,
        binned(ints(mine, "ip_bytes")),
        binned(stream_bytes(mine) - ints(mine, "retransmitted_bytes")),
    )


def in_flight(packets: pa.Table, direction: Direction) -> ByteCurve:
    """Bytes in flight (RFC 9002 §2) at the sender: once it sent a packet, and once one was acknowledged or
    declared lost. Packets whose keys were discarded (§6.4) leave when the next one is sent.
    """
    mine = in_direction(packets, direction)
    flying, sent_s = ints(mine, "in_flight_bytes", null=-1), floats(mine, "sent_s")
    keep = _by_time(np.where(flying >= 0, sent_s, np.nan))
    sent_s, flying = sent_s[keep], flying[keep]
    acked_s, lost_s = floats(mine, "acked_s"), floats(mine, "lost_s")
    gone_s = np.where(np.isnan(lost_s), acked_s, lost_s)  # what is acknowledged after all has left before
    gone_s = np.where(_counts_in_flight(mine), gone_s, np.nan)
    order = _by_time(gone_s)
    gone_s, size = gone_s[order], ints(mine, "size_bytes")[order]
    before = np.searchsorted(sent_s, gone_s, "right") - 1
    # Packets sent at an instant are counted after those acknowledged at it.
    keep = np.flatnonzero((before >= 0) & (before == np.searchsorted(sent_s, gone_s) - 1))
    before, left = before[keep], np.cumsum(size[keep])
    earlier = np.append(0, left)[np.searchsorted(before, before)]  # that had left before the packet
    after = np.maximum(flying[before] - (left - earlier), 0)
    time_s = np.append(sent_s, gone_s[keep])
    order = np.argsort(time_s, kind="stable")
    return ByteCurve(time_s[order], np.append(flying, after)[order])


def rtt(packets: pa.Table, direction: Direction) -> RttSeries:
    """The RTT samples of the sender of `direction`, when it took them."""
    theirs = in_direction(packets, OTHER[direction])
    sample, time_s = floats(theirs, "rtt_ms"), floats(theirs, "received_s")
    keep = _by_time(np.where(np.isnan(sample), np.nan, time_s))
    return RttSeries(time_s[keep], sample[keep])


def spin_rtt(packets: pa.Table) -> RttSeries:
    """The RTT samples of the spin bit (RFC 9312 §3.8.2), when the edge passed that ended each."""
    if "spin_rtt_ms" not in packets.column_names:  # of Bentpipe 0.2, which did not look at it
        return RttSeries(np.empty(0), np.empty(0))
    sample, sent_s = floats(packets, "spin_rtt_ms"), floats(packets, "sent_s")
    time_s = np.where(np.isnan(sent_s), floats(packets, "received_s"), sent_s)
    keep = _by_time(np.where(np.isnan(sample), np.nan, time_s))
    return RttSeries(time_s[keep], sample[keep])


def delays(packets: pa.Table, direction: Direction, side: Side | None = None) -> DelaySeries:
    """One-way delays of packets over time. The excess over the least is time in queues."""
    mine = in_direction(packets, direction)
    delay_ms = (floats(mine, "received_s") - floats(mine, "sent_s")) * 1e3
    time_s = seen(mine, side or best_side(packets, direction))
    keep = _by_time(np.where(np.isnan(delay_ms), np.nan, time_s))
    return DelaySeries(time_s[keep], delay_ms[keep])


def acks(
    packets: pa.Table, direction: Direction, side: Side | None = None, space: str = "application"
) -> AckSeries:
    """The ranges of all ACK frames for packets of `direction`, of one packet number space. Without `side`,
    when they were sent: at the receiver of the data, where that was captured.
    """
    theirs = in_direction(packets, OTHER[direction])
    ranges = flat(theirs, "ack_first", "ack_last")
    time_s = seen(theirs, side or best_side(packets, OTHER[direction]))
    time_s = np.where(_in_space(theirs, space), time_s, np.nan)[ranges.row]
    highest = np.diff(ranges.row, prepend=-1) != 0
    keep = _by_time(time_s)
    return AckSeries(time_s[keep], ranges["ack_first"][keep], ranges["ack_last"][keep], highest[keep])


def gaps(ranges: AckSeries) -> AckSeries:
    """The gaps between the ranges of each ACK frame: packets that had not arrived, or were forgotten."""
    below = np.flatnonzero(~ranges.highest)
    return AckSeries(
        ranges.time_s[below], ranges.last[below] + 1, ranges.first[below - 1] - 1, ranges.highest[below]
    )


def stream_bytes(packets: pa.Table) -> Ints:
    """Stream bytes of each packet."""
    frames = flat(packets, "stream_bytes")
    total = np.zeros(packets.num_rows, np.int64)
    np.add.at(total, frames.row, frames["stream_bytes"])
    return total


def _counts_in_flight(packets: pa.Table) -> Bools:
    """Which packets count towards bytes in flight: those with more than ACK and CONNECTION_CLOSE frames (TCP:
    those that take sequence space).
    """
    lists = packets["frames"].combine_chunks()
    row = np.asarray(pc.list_parent_indices(lists).to_numpy(zero_copy_only=False), dtype=np.int64)
    frames = np.asarray(pc.list_flatten(lists).to_pylist(), dtype=object).astype(str)
    tcp = (texts(packets, "protocol") == "tcp")[row]
    there = np.where(tcp, np.isin(frames, ("STREAM", "SYN")), ~np.isin(frames, ("ACK", "CONNECTION_CLOSE")))
    counts = np.zeros(packets.num_rows, np.bool_)
    counts[row[there]] = True
    return counts


def _in_space(packets: pa.Table, space: str) -> Bools:
    """Which packets are in the packet number space; TCP, which has none, counts as `application`."""
    tcp = texts(packets, "protocol") == "tcp"
    return np.asarray((texts(packets, "space") == space) | (tcp & (space == "application")), dtype=np.bool_)


def _by_time(time_s: Floats) -> Ints:
    """The indices of known times, in order of time; ties keep their order."""
    order = np.argsort(time_s, kind="stable")  # NaN are last
    return order[: np.count_nonzero(~np.isnan(time_s))]


def _highest_before(stream: Ints, end: Ints) -> Ints:
    """For each frame, the highest `end` of the frames before it on its stream; 0 if there is none."""
    before = np.zeros(len(end), np.int64)
    for one in np.unique(stream):
        mine = np.flatnonzero(stream == one)
        before[mine[1:]] = np.maximum.accumulate(end[mine])[:-1]
    return before


def _distinct(packets: pa.Table, column: str) -> ByteCurve:
    """Distinct stream bytes of the packets that have a time in `column`, added up over it."""
    frames = flat(packets, "stream_id", "stream_offset", "stream_bytes")
    time_s = floats(packets, column)[frames.row]
    keep = _by_time(time_s)
    streams: dict[int, _Ranges] = {}
    new = np.zeros(len(keep), np.int64)
    starts, sizes_, ids = (
        frames[name][keep].tolist() for name in ("stream_offset", "stream_bytes", "stream_id")
    )
    for at, (stream, start, size) in enumerate(zip(ids, starts, sizes_, strict=True)):
        new[at] = streams.setdefault(stream, _Ranges()).add(start, start + size)
    return ByteCurve(time_s[keep], np.cumsum(new))


class _Ranges:
    """A set of bytes as disjoint ranges, in order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> int:
        """Add the bytes from `start` up to `end`; how many of them are new."""
        if start == end:
            return 0
        low = bisect_left(self._ends, start)  # the first range that touches or lies behind
        high = bisect_right(self._starts, end)
        had = sum(
            max(0, min(end, e) - max(start, s))
            for s, e in zip(self._starts[low:high], self._ends[low:high], strict=True)
        )
        if low < high:
            begin, until = min(start, self._starts[low]), max(end, self._ends[high - 1])
        else:
            begin, until = start, end
        self._starts[low:high], self._ends[low:high] = [begin], [until]
        return end - start - had
