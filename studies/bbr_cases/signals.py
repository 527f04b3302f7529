"""What the wire shows of a sender: bytes sent, arrived and acknowledged over time, and bytes in flight.

All times are those at the sender's side, in seconds since the connection's first packet, but for arrivals.
Bytes are those of IP packets, which a link's rate counts, too. A packet is in flight until its sender first
hears of its arrival, or has to declare it lost (RFC 9002 section 6.1). A round trip is timed by packets, as
in section 5.5.1 of the draft: it ends when a packet is acknowledged that was sent after it began.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from bentpipe.analysis.plots.table import Bools, Floats, floats, in_direction, lost


@dataclass(frozen=True)
class PathFacts:
    """The bottleneck's rate and the round trip without queues."""

    rate_bps: float
    rtt_s: float

    @property
    def bdp_bytes(self) -> float:
        return self.rate_bps * self.rtt_s / 8


@dataclass(frozen=True)
class ByteSum:
    """Bytes that something happened to, over time."""

    time_s: Floats  # in order
    total: Floats  # bytes until then; one more, a 0 at the beginning

    @classmethod
    def of(cls, time_s: Floats, size: Floats) -> Self:
        """The sum over events; those without a time did not happen."""
        known = np.isfinite(time_s)
        order = np.argsort(time_s[known], kind="stable")
        return cls(time_s[known][order], np.concatenate([[0.0], np.cumsum(size[known][order])]))

    def until(self, at_s: float | Floats) -> Floats:
        """Bytes until a time."""
        return np.asarray(self.total[np.searchsorted(self.time_s, at_s, "right")], np.float64)

    def rate_bps(self, from_s: float, to_s: float) -> float:
        """The mean rate between two times."""
        return 8 * float(self.until(to_s) - self.until(from_s)) / (to_s - from_s)


@dataclass(frozen=True)
class WirePackets:
    """A sender's packets, in the order of sending; NaN where something did not happen."""

    sent_s: Floats
    arrived_s: Floats
    acked_s: Floats
    lost_s: Floats  # when its sender had to declare it lost
    size: Floats
    dropped: Bools  # it did not arrive


@dataclass(frozen=True)
class Signals:
    """A sender's packets, as curves, and the path that they took."""

    packets: WirePackets
    path: PathFacts

    @classmethod
    def of_table(cls, packets: pa.Table, path: PathFacts) -> Self:
        """From the packets of one connection."""
        mine = in_direction(packets, "forward")
        order = np.argsort(floats(mine, "sent_s"), kind="stable")
        found = WirePackets(
            sent_s=floats(mine, "sent_s")[order],
            arrived_s=floats(mine, "received_s")[order],
            acked_s=floats(mine, "acked_s")[order],
            lost_s=floats(mine, "lost_s")[order],
            size=np.nan_to_num(floats(mine, "ip_bytes")[order]),
            dropped=lost(mine)[order],
        )
        return cls(found, path)

    @cached_property
    def sent(self) -> ByteSum:
        return ByteSum.of(self.packets.sent_s, self.packets.size)

    @cached_property
    def arrived(self) -> ByteSum:
        return ByteSum.of(self.packets.arrived_s, self.packets.size)

    @cached_property
    def acked(self) -> ByteSum:
        return ByteSum.of(self.packets.acked_s, self.packets.size)

    @cached_property
    def dropped(self) -> ByteSum:
        """By the time at which they were sent."""
        return ByteSum.of(np.where(self.packets.dropped, self.packets.sent_s, np.nan), self.packets.size)

    @cached_property
    def _settled(self) -> ByteSum:
        mine = self.packets
        return ByteSum.of(np.where(np.isfinite(mine.acked_s), mine.acked_s, mine.lost_s), mine.size)

    @property
    def end_s(self) -> float:
        return float(self.packets.sent_s[-1])

    def in_flight(self, at_s: float | Floats) -> Floats:
        """Bytes in flight at a time."""
        return np.asarray(self.sent.until(at_s) - self._settled.until(at_s), np.float64)

    def bdps(self, at_s: float | Floats) -> Floats:
        """The same in BDPs of the path."""
        return self.in_flight(at_s) / self.path.bdp_bytes

    def pace(self, from_s: float, to_s: float) -> float:
        """The rate of sending as a share of the bottleneck's."""
        return self.sent.rate_bps(from_s, to_s) / self.path.rate_bps

    def use(self, from_s: float, to_s: float) -> float:
        """The rate of arrivals as a share of the bottleneck's."""
        return self.arrived.rate_bps(from_s, to_s) / self.path.rate_bps

    def loss(self, from_s: float, to_s: float) -> float:
        """The share of the bytes sent in between that did not arrive."""
        sent = float(self.sent.until(to_s) - self.sent.until(from_s))
        return float(self.dropped.until(to_s) - self.dropped.until(from_s)) / sent if sent else 0.0

    def times(self, from_s: float, to_s: float) -> Floats:
        """Times an eighth of a round trip apart."""
        return np.arange(from_s, to_s, self.path.rtt_s / 8)

    def paces(self, at_s: Floats) -> Floats:
        """The pace over the round trip around each time."""
        half = self.path.rtt_s / 2
        bits = 8 * (self.sent.until(at_s + half) - self.sent.until(at_s - half))
        return bits / (2 * half) / self.path.rate_bps

    @cached_property
    def delivery_rates(self) -> tuple[Floats, Floats]:
        """Times of acknowledgements and the sample that each gives, as a share of the bottleneck's rate.

        As in section 4.1.1.2 of the draft, over the time from a packet's sending to its acknowledgement.
        """
        mine = self.packets
        known = np.flatnonzero(np.isfinite(mine.acked_s) & (mine.acked_s > mine.sent_s))
        sent, acked = mine.sent_s[known], mine.acked_s[known]
        rates = 8 * (self.acked.until(acked) - self.acked.until(sent)) / (acked - sent)
        order = np.argsort(acked, kind="stable")
        return acked[order], rates[order] / self.path.rate_bps

    @cached_property
    def lowest_rtt_s(self) -> Floats:
        """When an RTT sample was lower than all before, by a microsecond at least."""
        mine = self.packets
        known = np.isfinite(mine.acked_s)
        order = np.argsort(mine.acked_s[known], kind="stable")
        times = mine.acked_s[known][order]
        rtts = np.round(1e6 * (times - mine.sent_s[known][order]))
        least = np.minimum.accumulate(rtts)
        return np.asarray(times[np.diff(least, prepend=np.inf) < 0], np.float64)

    def round_end(self, from_s: float) -> float | None:
        """When the round trip that begins at `from_s` ends; None if no later packet was acknowledged."""
        mine = self.packets
        first = int(np.searchsorted(mine.sent_s, from_s))
        later = mine.acked_s[first : first + 2000]
        known = later[np.isfinite(later)]
        return float(known.min()) if len(known) else None

    def rounds(self, from_s: float, to_s: float) -> float:
        """How many round trips lie between two times; the last counts in part."""
        count, begin = 0.0, from_s
        while begin < to_s:
            end = self.round_end(begin)
            if end is None or end <= begin:
                return count
            count += min((to_s - begin) / (end - begin), 1.0)
            begin = end
        return count


def spans(times: Floats, on: Bools, gap_s: float) -> list[tuple[float, float]]:
    """The spans in which something holds; those less than `gap_s` apart are one."""
    found: list[tuple[float, float]] = []
    for time in times[on]:
        if found and time - found[-1][1] <= gap_s:
            found[-1] = (found[-1][0], float(time))
        else:
            found.append((float(time), float(time)))
    return found
