"""A toy transport behind the endpoint contract, for tests: it is no QUIC.

The client asks for ten packets at a time (`G seed offset path`), the server answers each request at once
(`D size offset data`, or `N path` if there is no such file), the client closes (`C`). What is lost is asked
for again after a second. One file is fetched after the other.
"""

from __future__ import annotations

import heapq
import json
import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HELLO, READY, RUN, RAN, FINISH, BYE = range(1, 7)
NEVER = 2**64 - 1
SECOND = 10**9
CHUNK, BATCH = 1200, 10


def read_exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = os.read(3, size - len(data))
        if not chunk:
            sys.exit(1)
        data += chunk
    return data


def read_message() -> tuple[int, bytes]:
    length, kind = struct.unpack("<IB", read_exactly(5))
    return kind, read_exactly(length)


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("<IB", len(body), kind) + body


def write(data: bytes) -> None:
    while data:
        data = data[os.write(4, data) :]


@dataclass
class Ran:
    """What is about to be answered to RUN."""

    until: int
    arrived: bool
    next_wake: int
    done: bool
    departures: list[tuple[int, bytes]]

    def encode(self) -> bytes:
        body = struct.pack("<QBI", self.next_wake, self.done, len(self.departures))
        for at, data in self.departures:
            body += struct.pack("<QBH", at, 0, len(data)) + data
        return message(RAN, body)


class Fetch:
    """One request of a client."""

    def __init__(self, url: str) -> None:
        self.path = "/" + url.split("/", 3)[3]
        self.size: int | None = None
        self.chunks: dict[int, bytes] = {}
        self.first: int | None = None
        self.last: int | None = None
        self.refused = False

    @property
    def complete(self) -> bool:
        return self.refused or (self.size is not None and sum(map(len, self.chunks.values())) >= self.size)

    def report(self) -> dict[str, Any]:
        size = sum(map(len, self.chunks.values()))
        return {"path": self.path, "bytes": size, "first_byte_ns": self.first, "last_byte_ns": self.last}


class Client:
    def __init__(self, hello: dict[str, Any]) -> None:
        self.downloads = Path(hello["downloads"])
        self.seed = bytes.fromhex(hello["seed"])
        self.fetches = [Fetch(url) for url in hello["requests"]]
        self.asked: list[int] = []
        self.next_wake = 0
        self.handshake: int | None = None
        self.done = False

    def ask(self, now: int) -> list[bytes]:
        fetch = next(fetch for fetch in self.fetches if not fetch.complete)
        end = CHUNK if fetch.size is None else fetch.size
        wanted = [offset for offset in range(0, max(end, 1), CHUNK) if offset not in fetch.chunks]
        self.asked = wanted[:BATCH]
        self.next_wake = now + SECOND
        return [b"G" + self.seed + struct.pack("<I", offset) + fetch.path.encode() for offset in self.asked]

    def receive(self, now: int, data: bytes) -> list[bytes]:
        if self.done or data[:1] not in (b"D", b"N"):
            return []
        self.handshake = now if self.handshake is None else self.handshake
        fetch = next(fetch for fetch in self.fetches if not fetch.complete)
        if data[:1] == b"N":
            fetch.refused = fetch.refused or data[1:].decode() == fetch.path
        else:
            self.take(fetch, now, data)
        if all(fetch.complete for fetch in self.fetches):
            self.done, self.next_wake = True, NEVER
            return [b"C"]
        return self.ask(now) if fetch.complete or set(self.asked) <= set(fetch.chunks) else []

    def take(self, fetch: Fetch, now: int, data: bytes) -> None:
        size, offset, number = struct.unpack_from("<IIB", data, 1)
        path = data[10 : 10 + number].decode()
        if path == fetch.path:
            fetch.size, fetch.chunks[offset] = size, data[10 + number :]
            fetch.first, fetch.last = now if fetch.first is None else fetch.first, now

    def store(self) -> None:
        for fetch in self.fetches:
            if fetch.complete and not fetch.refused:
                body = b"".join(fetch.chunks[offset] for offset in sorted(fetch.chunks))
                (self.downloads / fetch.path.lstrip("/")).write_bytes(body)

    def bye(self) -> dict[str, Any]:
        requests = [fetch.report() for fetch in self.fetches]
        return {"handshake_ns": self.handshake, "requests": requests, "error": None}


class Server:
    def __init__(self, hello: dict[str, Any]) -> None:
        self.www = Path(hello["www"])
        self.next_wake = NEVER
        self.handshake: int | None = None
        self.done = False

    def ask(self, now: int) -> list[bytes]:
        self.done, self.next_wake = True, NEVER  # the client has not been heard of for long
        return []

    def receive(self, now: int, data: bytes) -> list[bytes]:
        self.handshake = now if self.handshake is None else self.handshake
        self.next_wake = now + 30 * SECOND
        if data[:1] == b"C":
            self.done, self.next_wake = True, NEVER
        if data[:1] != b"G":
            return []
        (offset,) = struct.unpack_from("<I", data, 9)
        path = data[13:]
        body = self.read(path.decode())
        if body is None:
            return [b"N" + path]
        head = b"D" + struct.pack("<IIB", len(body), offset, len(path)) + path
        return [head + body[offset : offset + CHUNK]]

    def read(self, path: str) -> bytes | None:
        """The file that is served, if there is one and it lies below www."""
        file = (self.www / path.lstrip("/")).resolve()
        if not file.is_relative_to(self.www.resolve()) or not file.is_file():
            return None
        return file.read_bytes()

    def store(self) -> None:
        pass

    def bye(self) -> dict[str, Any]:
        return {"handshake_ns": self.handshake, "requests": [], "error": None}


class Toy:
    """The program. Every method is a step that another toy can get wrong."""

    client: type[Client] = Client
    server: type[Server] = Server

    def main(self) -> int:
        """From HELLO to BYE; the exit code."""
        _, body = read_message()
        hello = json.loads(body)
        self.offer = hello.get("shared_memory")
        if not self.supports(hello):
            return 127
        self.end = (self.client if hello["role"] == "client" else self.server)(hello)
        self.now = 0
        self.greet(self.ready())
        while True:
            kind, body = read_message()
            if kind == FINISH:
                self.store(hello)
                self.part()
                return self.leave()
            self.answer(self.run(body))

    def supports(self, hello: dict[str, Any]) -> bool:
        known = hello["testcase"] == "transfer" and hello["role"] in ("client", "server")
        return known and hello["options"] in ({}, {"speed": "slow"})

    def ready(self) -> dict[str, Any]:
        wake = None if self.end.next_wake == NEVER else self.end.next_wake
        return {"stack": "toy", "version": "toy 1", "driver": "one datagram at a time", "next_wake": wake}

    def greet(self, ready: dict[str, Any]) -> None:
        write(message(READY, json.dumps(ready).encode()))

    def run(self, body: bytes) -> Ran:
        until, arrivals = arrivals_of(body)
        arrived, departures = bool(arrivals), []
        while True:
            at = arrivals[0][0] if arrivals else NEVER
            if min(at, self.end.next_wake) >= until:
                break
            self.now = max(self.now, min(at, self.end.next_wake))
            if at <= self.end.next_wake:
                sent = self.end.receive(self.now, heapq.heappop(arrivals)[2])
            else:
                sent = self.end.ask(self.now)
            departures += [(self.now, data) for data in sent]
        self.now = until
        return Ran(until, arrived, self.end.next_wake, self.end.done, departures)

    def answer(self, ran: Ran) -> None:
        write(ran.encode())

    def store(self, hello: dict[str, Any]) -> None:
        self.end.store()
        for name in (hello["keylog"], hello["qlog"] and f"{hello['qlog']}/toy.sqlog"):
            if name:
                labels = ("CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0")
                Path(name).write_text("".join(f"{label} {'00' * 32} {'00' * 32}\n" for label in labels))

    def part(self) -> None:
        write(message(BYE, json.dumps(self.end.bye()).encode()))

    def leave(self) -> int:
        return 0


def arrivals_of(body: bytes) -> tuple[int, list[tuple[int, int, bytes]]]:
    """A RUN's `until` and its datagrams as a heap of (time, number, payload)."""
    until, count = struct.unpack_from("<QI", body)
    position, arrivals = 12, []
    for number in range(count):
        at, _ecn, size = struct.unpack_from("<QBH", body, position)
        position += 11
        arrivals.append((at, number, body[position : position + size]))
        position += size
    heapq.heapify(arrivals)
    return until, arrivals
