"""A toy transport behind the endpoint contract, for tests: it is no QUIC, and can be told to misbehave.

The client asks for ten packets at a time (`G seed offset path`), the server answers each request at once
(`D size offset data`), the client closes (`C`). What is lost is asked for again after a second.

    endpoint.py [--misbehave HOW]...
"""

from __future__ import annotations

import heapq
import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any

HELLO, READY, RUN, RAN, FINISH, BYE = range(1, 7)
NEVER = 2**64 - 1
SECOND = 10**9
CHUNK, BATCH = 1200, 10
HOW = set(sys.argv[2::2])


def read_exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = os.read(3, size - len(data))
        if not chunk:
            sys.exit(1)
        data += chunk
    return data


def read_frame() -> tuple[int, bytes]:
    length, kind = struct.unpack("<IB", read_exactly(5))
    return kind, read_exactly(length)


def write_frame(kind: int, body: bytes) -> None:
    data = struct.pack("<IB", len(body), kind) + body
    while data:
        data = data[os.write(4, data) :]


class Client:
    def __init__(self, hello: dict[str, Any]) -> None:
        self.path = "/" + hello["requests"][0].split("/", 3)[3]
        self.target = Path(hello["downloads"]) / self.path.lstrip("/")
        self.seed = bytes.fromhex(hello["seed"])
        self.size: int | None = None
        self.chunks: dict[int, bytes] = {}
        self.asked: list[int] = []
        self.next_wake = 0
        self.first: int | None = None
        self.last: int | None = None
        self.done = False

    def ask(self, now: int) -> list[bytes]:
        end = CHUNK if self.size is None else self.size
        wanted = [offset for offset in range(0, max(end, 1), CHUNK) if offset not in self.chunks]
        self.asked = wanted[:BATCH]
        self.next_wake = now + SECOND
        return [b"G" + self.seed + struct.pack("<I", offset) + self.path.encode() for offset in self.asked]

    def receive(self, now: int, data: bytes) -> list[bytes]:
        if self.done or data[:1] != b"D":
            return []
        self.size, offset = struct.unpack_from("<II", data, 1)
        self.chunks[offset] = data[9:]
        self.first = now if self.first is None else self.first
        self.last = now
        if sum(map(len, self.chunks.values())) >= self.size:
            self.done, self.next_wake = True, NEVER
            return [b"C"]
        return self.ask(now) if all(offset in self.chunks for offset in self.asked) else []

    def bye(self) -> dict[str, Any]:
        body = b"".join(self.chunks[offset] for offset in sorted(self.chunks))
        if self.done and "no-file" not in HOW:
            self.target.write_bytes(body)
        request = {
            "path": self.path,
            "bytes": len(body),
            "first_byte_ns": self.first,
            "last_byte_ns": self.last,
        }
        return {"handshake_ns": self.first, "requests": [request], "error": None}


class Server:
    def __init__(self, hello: dict[str, Any]) -> None:
        self.www = Path(hello["www"])
        self.next_wake = NEVER
        self.first: int | None = None
        self.done = False

    def ask(self, now: int) -> list[bytes]:
        self.done, self.next_wake = True, NEVER  # the client has not been heard of for long
        return []

    def receive(self, now: int, data: bytes) -> list[bytes]:
        self.first = now if self.first is None else self.first
        self.next_wake = now + 30 * SECOND
        if data[:1] == b"C":
            self.done, self.next_wake = True, NEVER
        if data[:1] != b"G" or "mute" in HOW:
            return []
        (offset,) = struct.unpack_from("<I", data, 9)
        body = (self.www / data[13:].decode().lstrip("/")).read_bytes()
        if "truncate" in HOW:
            body = body[: len(body) // 2]
        if "wrong-byte" in HOW:
            body = body[:-1] + bytes([body[-1] ^ 1])
        return [b"D" + struct.pack("<II", len(body), offset) + body[offset : offset + CHUNK]]

    def bye(self) -> dict[str, Any]:
        return {"handshake_ns": self.first, "requests": [], "error": None}


def run(end: Client | Server, body: bytes, now: int) -> int:
    until, count = struct.unpack_from("<QI", body)
    position, arrivals = 12, []
    for number in range(count):
        at, _ecn, size = struct.unpack_from("<QBH", body, position)
        position += 11
        arrivals.append((at, number, body[position : position + size]))
        position += size
    heapq.heapify(arrivals)
    departures: list[tuple[int, bytes]] = []
    while True:
        at = arrivals[0][0] if arrivals else NEVER
        if min(at, end.next_wake) >= until:
            break
        now = max(now, min(at, end.next_wake))
        due = at <= end.next_wake
        sent = end.receive(now, heapq.heappop(arrivals)[2]) if due else end.ask(now)
        departures += [(now, data) for data in sent]
    misbehave_while_running(until, bool(count))
    answer = struct.pack("<QBI", end.next_wake, end.done, len(departures))
    for at, data in departures:
        at = until if "late" in HOW else at
        answer += struct.pack("<QBH", at, 0, len(data)) + data
    write_frame(RAN, answer)
    return until


def misbehave_while_running(until: int, arrived: bool) -> None:
    if "crash" in HOW and arrived:
        print("toy: told to crash", file=sys.stderr)
        os._exit(3)
    if "hang" in HOW and arrived:
        time.sleep(3600)
    if "rubbish" in HOW and arrived:
        os.write(4, b"this is no frame at all")
        time.sleep(3600)


def main() -> None:
    kind, body = read_frame()
    hello = json.loads(body)
    known = (hello["testcase"] == "transfer" or "careless" in HOW) and hello["role"] in ("client", "server")
    if kind != HELLO or not known or set(hello["options"]) - {"speed"} or "refuse" in HOW:
        sys.exit(127)
    if hello["options"].get("speed", "slow") != "slow":
        sys.exit(127)
    end: Client | Server = Client(hello) if hello["role"] == "client" else Server(hello)
    ready = {
        "stack": "toy",
        "version": "toy 1",
        "driver": "one datagram at a time",
        "next_wake": None if end.next_wake == NEVER else end.next_wake,
    }
    if "no-driver" in HOW:
        del ready["driver"]
    write_frame(READY, json.dumps(ready).encode())
    now = 0
    while True:
        kind, body = read_frame()
        if kind == FINISH:
            break
        now = run(end, body, now)
    for name in (hello["keylog"], hello["qlog"] and f"{hello['qlog']}/toy.sqlog"):
        if name and "no-secrets" not in HOW:
            labels = ("CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0")
            Path(name).write_text("".join(f"{label} {'00' * 32} {'00' * 32}\n" for label in labels))
    write_frame(BYE, json.dumps(end.bye()).encode())


main()
