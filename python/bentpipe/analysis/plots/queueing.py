"""Queues on the way, as both ends of it show them: what waits, for how long, and what is marked or dropped.

A packet's time in queues is its one-way delay above the least of its connection and direction: of the whole
path, all of whose queues it adds up. What else varies counts too: jitter, frames, a rate that changes, and
the transmission of a packet that is larger than the fastest one. What waits is what has been sent and has not
yet left, if all of the least delay lies behind the queue: with the time axis of the sender, the packet sent
at s that arrives at a waits from s until a - least. Packets that did not arrive are not counted, as nobody
saw for how long they waited: where a queue drops what it had taken in (CoDel, head drop), more waits than
this. Nor are packets of other connections counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bentpipe.analysis.plots.series import ByteCurve
from bentpipe.analysis.plots.table import (
    SENDER,
    Bools,
    Direction,
    Floats,
    Ints,
    Side,
    best_side,
    floats,
    in_direction,
    ints,
    texts,
)

_CE = "CE"  # Congestion Experienced (RFC 3168 section 5)
_NANO = 1e9


@dataclass(frozen=True)
class SojournSeries:
    """An entry per IP packet that was seen at both sides."""

    time_s: Floats
    sojourn_ms: Floats  # its one-way delay above the least
    marked: Bools  # it arrived with CE, and was not sent so


@dataclass(frozen=True)
class QueueSeries:
    """Bytes of IP packets that wait, and those that met a mark or a drop."""

    waiting: ByteCurve
    marked: ByteCurve  # of each packet that was marked, what waited once it was sent
    dropped: ByteCurve  # the same of each packet that a queue dropped, which is not among it
    missing: ByteCurve  # the same of each packet that did not arrive, for a cause that is not known


def sojourns(packets: pa.Table, direction: Direction, side: Side | None = None) -> SojournSeries:
    """Times in queues, over the time at which packets pass `side`."""
    both, sent, received = _seen_at_both(packets, direction)
    if both.num_rows == 0:
        return SojournSeries(np.empty(0), np.empty(0), np.empty(0, np.bool_))
    waited = received - sent
    waited = waited - waited.min()
    time = sent if _at_sender(packets, direction, side) else received
    order = np.argsort(time, kind="stable")
    return SojournSeries(time[order] / _NANO, waited[order] / 1e6, _marked(both)[order])


def queue(packets: pa.Table, direction: Direction, side: Side | None = None) -> QueueSeries:
    """Packets that wait, over the time at which packets pass `side`."""
    both, sent, received = _seen_at_both(packets, direction)
    if both.num_rows == 0:
        none = ByteCurve(np.empty(0), np.empty(0, np.int64))
        return QueueSeries(none, none, none, none)
    least = int((received - sent).min())
    later = 0 if _at_sender(packets, direction, side) else least
    size, leaves = ints(both, "ip_bytes"), received - least
    time = np.concatenate([leaves, sent])  # of one instant, those first that leave
    order = np.argsort(time, kind="stable")
    time, waiting = time[order], np.cumsum(np.concatenate([-size, size])[order])
    last = np.append(np.diff(time) > 0, True)
    time, waiting = time[last], waiting[last]

    def at(sent_ns: Ints) -> ByteCurve:
        sent_ns = np.sort(sent_ns)
        here = np.searchsorted(time, sent_ns, "right") - 1
        return ByteCurve((sent_ns + later) / _NANO, np.where(here < 0, 0, waiting[np.maximum(here, 0)]))

    return QueueSeries(
        ByteCurve((time + later) / _NANO, waiting),
        at(sent[_marked(both)]),
        at(_sent_with(packets, direction, "queue_drop")),
        at(_sent_with(packets, direction, "not_received")),
    )


def _at_sender(packets: pa.Table, direction: Direction, side: Side | None) -> bool:
    return (side or best_side(packets, direction)) == SENDER[direction]


def _seen_at_both(packets: pa.Table, direction: Direction) -> tuple[pa.Table, Ints, Ints]:
    """The IP packets that were seen at both sides; when they were sent and received, in nanoseconds."""
    mine = in_direction(packets, direction)
    sent, received = floats(mine, "sent_s"), floats(mine, "received_s")
    both = (ints(mine, "ip_bytes") > 0) & ~np.isnan(sent) & ~np.isnan(received)
    return mine.filter(pa.array(both)), _nanos(sent[both]), _nanos(received[both])


def _sent_with(packets: pa.Table, direction: Direction, fate: str) -> Ints:
    """When the IP packets with this fate were sent."""
    mine = in_direction(packets, direction)
    sent = floats(mine, "sent_s")
    here = (texts(mine, "fate") == fate) & (ints(mine, "ip_bytes") > 0) & ~np.isnan(sent)
    return _nanos(sent[here])


def _marked(packets: pa.Table) -> Bools:
    if "received_ecn" not in packets.column_names:  # of Bentpipe 0.2, which did not look at it
        return np.zeros(packets.num_rows, np.bool_)
    arrived, left = (texts(packets, name) for name in ("received_ecn", "sent_ecn"))
    return np.asarray((arrived == _CE) & (left != _CE), dtype=np.bool_)


def _nanos(seconds: Floats) -> Ints:
    return np.rint(seconds * _NANO).astype(np.int64)
