"""A transfer, made up: a file sent by a server over a satellite, as the rows of `packets.parquet`.

The path has a rate, a queue, random loss and 300 ms each way. The sender starts slowly, halves its window
once per round trip with losses (RFC 9002 §7), declares packets lost by the packet threshold (§6.1.1) and
probes when nothing else is left. The client acknowledges every second packet, with all ranges it knows, up to
20.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

_INTS = pa.list_(pa.int64())
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("connection", pa.int32()),
    ("protocol", pa.string()),
    ("sender", pa.string()),
    ("direction", pa.string()),
    ("type", pa.string()),
    ("space", pa.string()),
    ("number", pa.int64()),
    ("sent_s", pa.float64()),
    ("received_s", pa.float64()),
    ("size_bytes", pa.int32()),
    ("ip_bytes", pa.int32()),
    ("sent_ecn", pa.string()),
    ("received_ecn", pa.string()),
    ("frames", pa.list_(pa.string())),
    ("stream_id", _INTS),
    ("stream_offset", _INTS),
    ("stream_bytes", _INTS),
    ("retransmitted_bytes", pa.int64()),
    ("ack_first", _INTS),
    ("ack_last", _INTS),
    ("ack_delay_ms", pa.float64()),
    ("fate", pa.string()),
    ("copy", pa.bool_()),
    ("acked_s", pa.float64()),
    ("lost_s", pa.float64()),
    ("in_flight_bytes", pa.int64()),
    ("rtt_ms", pa.float64()),
    ("spin", pa.bool_()),
    ("spin_rtt_ms", pa.float64()),
    ("max_data", pa.int64()),
    ("max_stream_data", pa.int64()),
]
SCHEMA = pa.schema(_COLUMNS)
PAYLOAD = 1200  # stream bytes of a full packet
HEADERS = 35  # of QUIC in a full packet, tag included
IP_UDP = 28
RANGES = 20


@dataclass(frozen=True)
class Setting:
    """What is sent over which path."""

    size_bytes: int = 1_000_000
    forward_bps: float = 20e6
    return_bps: float = 2e6
    delay_s: float = 0.3
    queue_bytes: int = 200_000
    loss: float = 0.002
    seed: int = 1


@dataclass
class Pipe:
    """One direction: a rate, a queue, losses, a delay."""

    bps: float
    delay_s: float
    queue_bytes: int
    loss: float
    dice: random.Random
    free_s: float = 0.0

    def send(self, now: float, size: int) -> tuple[str, float | None]:
        """The fate of an IP packet, and when it arrives."""
        start = max(self.free_s, now)
        if (start - now) * self.bps / 8 > self.queue_bytes:
            return "queue_drop", None
        self.free_s = start + size * 8 / self.bps
        if self.dice.random() < self.loss:
            return "loss", None
        return "delivered", self.free_s + self.delay_s


@dataclass
class Sender:
    """What the server knows: its window, and what is in flight."""

    cwnd: float = 10 * (PAYLOAD + HEADERS)
    ssthresh: float = float("inf")
    recovery_from: int = 0  # packets from here on count as sent after the last reduction
    next_offset: int = 0
    lost: list[int] = field(default_factory=list)  # offsets to send again
    flying: dict[int, dict[str, Any]] = field(default_factory=dict)
    largest_acked: int = -1

    @property
    def in_flight(self) -> int:
        return sum(row["size_bytes"] for row in self.flying.values())

    def on_ack(self, ranges: list[tuple[int, int]], now: float) -> float | None:
        """Take an ACK; the RTT sample in ms if it gives one."""
        largest = ranges[0][1]
        sample = (now - self.flying[largest]["sent_s"]) * 1e3 if largest in self.flying else None
        for number in [n for n in self.flying if any(a <= n <= b for a, b in ranges)]:
            row = self.flying.pop(number)
            row["acked_s"] = now
            size = row["size_bytes"]
            self.cwnd += size if self.cwnd < self.ssthresh else (PAYLOAD + HEADERS) * size / self.cwnd
        self.largest_acked = max(self.largest_acked, largest)
        for number in [n for n in self.flying if n + 3 <= self.largest_acked]:
            self.declare_lost(number, now)
        return sample

    def declare_lost(self, number: int, now: float) -> None:
        row = self.flying.pop(number)
        row["lost_s"] = now
        self.lost += row["stream_offset"]
        if number >= self.recovery_from:
            self.cwnd = self.ssthresh = max(self.cwnd / 2, 2 * (PAYLOAD + HEADERS))
            self.recovery_from = 1 << 62  # until the next packet is sent


class World:
    """One transfer, event by event."""

    def __init__(self, setting: Setting) -> None:
        dice = random.Random(setting.seed)
        self.setting = setting
        self.rows: list[dict[str, Any]] = []
        queue = setting.queue_bytes
        self.forward = Pipe(setting.forward_bps, setting.delay_s, queue, setting.loss, dice)
        self.back = Pipe(setting.return_bps, setting.delay_s, queue, 0, dice)
        self.sender = Sender()
        self.numbers = {"client": 0, "server": 0}
        self.received: list[int] = []  # packet numbers at the client, since the last ACK
        self.known: list[tuple[int, int]] = []  # ranges at the client, highest first
        self.offsets: set[int] = set()
        self.credit = 400_000  # as the server knows it
        self.granted = self.credit
        self.cwnd: dict[str, list[float]] = {"time_s": [], "bytes": []}
        self.last_byte_s = 0.0
        self._events: list[tuple[float, int, Any, Any]] = []
        self._order = 0

    def run(self) -> None:
        self._handshake()
        while self._events:
            now, _, call, argument = heapq.heappop(self._events)
            call(now, argument)

    def _at(self, time_s: float, call: Any, argument: Any = None) -> None:
        self._order += 1
        heapq.heappush(self._events, (time_s, self._order, call, argument))

    def _packet(self, now: float, sender: str, size: int, **values: Any) -> dict[str, Any]:
        """Send a packet in a datagram of its own; its row."""
        pipe = self.forward if sender == "server" else self.back
        fate, arrival = pipe.send(now, size + IP_UDP)
        number = values.pop("number", None)
        if number is None:
            number = self.numbers[sender]
            self.numbers[sender] += 1
        direction = "forward" if sender == "server" else "return"
        nothing: dict[str, Any] = {
            name: [] for name in SCHEMA.names if pa.types.is_list(SCHEMA.field(name).type)
        }
        row = dict.fromkeys(SCHEMA.names) | nothing | {
            "connection": 0, "protocol": "quic", "sender": sender, "direction": direction, "type": "1rtt",
            "space": "application", "number": number, "sent_s": now, "received_s": arrival,
            "size_bytes": size, "ip_bytes": size + IP_UDP, "retransmitted_bytes": 0, "fate": fate,
            "copy": False,
        } | values  # fmt: skip
        self.rows.append(row)
        return row

    def _handshake(self) -> None:
        self.forward.loss, loss = 0.0, self.forward.loss
        hello = self._packet(0.0, "client", 1200, type="initial", space="initial", number=0,
                             frames=["CRYPTO", "PADDING"])  # fmt: skip
        at = hello["received_s"]
        answer = self._packet(at, "server", 1200, type="initial", space="initial", number=0,
                              frames=["CRYPTO", "ACK"], ack_first=[0], ack_last=[0])  # fmt: skip
        answer["size_bytes"] = 150
        rest = dict(answer, type="handshake", space="handshake", size_bytes=1050, ip_bytes=None,
                    frames=["CRYPTO"], ack_first=[], ack_last=[])  # fmt: skip
        self.rows.append(rest)
        self.handshake_s = answer["received_s"]
        self._packet(self.handshake_s, "client", 90, type="handshake", space="handshake", number=0,
                     frames=["ACK", "CRYPTO"], ack_first=[0], ack_last=[0])  # fmt: skip
        request = self._packet(self.handshake_s, "client", 60, frames=["STREAM"], stream_id=[0],
                               stream_offset=[0], stream_bytes=[20])  # fmt: skip
        self.forward.loss = loss
        self._at(request["received_s"], self._fill, None)

    def _fill(self, now: float, _: None) -> None:
        """The server sends what its window and the client's credit allow."""
        server = self.sender
        full = PAYLOAD + HEADERS
        while server.in_flight + full <= server.cwnd:
            if server.lost:
                self._data(now, server.lost.pop(0), again=True)
            elif server.next_offset < min(self.setting.size_bytes, self.credit):
                self._data(now, server.next_offset, again=False)
                server.next_offset += PAYLOAD
            else:
                break
        self.cwnd["time_s"].append(now)
        self.cwnd["bytes"].append(int(server.cwnd))

    def _data(self, now: float, offset: int, again: bool) -> None:
        size = min(PAYLOAD, self.setting.size_bytes - offset)
        row = self._packet(now, "server", size + HEADERS, frames=["STREAM"], stream_id=[0],
                           stream_offset=[offset], stream_bytes=[size])  # fmt: skip
        row["retransmitted_bytes"] = size if again else 0
        self.sender.flying[row["number"]] = row
        self.sender.recovery_from = min(self.sender.recovery_from, row["number"])
        row["in_flight_bytes"] = self.sender.in_flight
        if row["received_s"] is not None:
            self._at(row["received_s"], self._arrived, row)
        self._at(now + 3 * (2 * self.setting.delay_s + 0.1), self._probe, row["number"])

    def _probe(self, now: float, number: int) -> None:
        if number in self.sender.flying:
            self.sender.declare_lost(number, now)
            self._fill(now, None)

    def _arrived(self, now: float, row: dict[str, Any]) -> None:
        before = len(self.offsets)
        self.offsets.add(row["stream_offset"][0])
        if len(self.offsets) > before:
            self.last_byte_s = now
        self.received.append(row["number"])
        if len(self.received) == 1:
            self._at(now + 0.025, self._acknowledge, None)
        elif len(self.received) >= 2:
            self._acknowledge(now, None)

    def _acknowledge(self, now: float, _: None) -> None:
        if not self.received:
            return
        self.known = _merged(self.known, self.received)[:RANGES]
        self.received = []
        first, last = ([pair[end] for pair in self.known] for end in (0, 1))
        row = self._packet(now, "client", 40, frames=["ACK"], ack_delay_ms=1.0, ack_first=first,
                           ack_last=last)  # fmt: skip
        granted = len(self.offsets) * PAYLOAD + 3_000_000
        if granted > self.granted + 500_000:
            self.granted = granted
            row["frames"] = ["ACK", "MAX_STREAM_DATA"]
            row["max_stream_data"] = granted
        if row["received_s"] is not None:
            self._at(row["received_s"], self._acked, row)

    def _acked(self, now: float, row: dict[str, Any]) -> None:
        ranges = list(zip(row["ack_first"], row["ack_last"], strict=True))
        row["rtt_ms"] = self.sender.on_ack(ranges, now)
        self.credit = max(self.credit, row["max_stream_data"] or 0)
        self._fill(now, None)


def _merged(known: list[tuple[int, int]], numbers: list[int]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted([*known, *((n, n) for n in numbers)], reverse=True):
        if merged and last >= merged[-1][0] - 1:
            merged[-1] = (min(first, merged[-1][0]), merged[-1][1])
        else:
            merged.append((first, last))
    return merged


def simulate(setting: Setting) -> World:
    world = World(setting)
    world.run()
    world.rows.sort(key=lambda row: row["sent_s"])
    return world
