"""A proxy that does nothing: what arrives on one side leaves on the other, at the same instant.

`crash` as an argument makes it end, with a word, at the first datagram from the server's side.
"""

from __future__ import annotations

import json
import os
import struct
import sys

HELLO, READY, RUN, RAN, FINISH, BYE = 1, 2, 3, 4, 5, 6
NEVER = 2**64 - 1
SERVER_SIDE = 0x80
DATAGRAM = struct.Struct("<QBH")


def receive() -> tuple[int, bytes]:
    length, kind = struct.unpack("<IB", _exactly(5))
    return kind, _exactly(length)


def _exactly(count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = os.read(3, count - len(data))
        if not part:
            sys.exit(0)
        data += part
    return data


def send(kind: int, body: bytes) -> None:
    frame = memoryview(struct.pack("<IB", len(body), kind) + body)
    while frame:
        frame = frame[os.write(4, frame) :]


def relay(body: bytes, passed: list[int]) -> bytes:
    """The answer to a RUN."""
    (count,) = struct.unpack_from("<I", body, 8)
    at, departures = 12, b""
    for _ in range(count):
        time, ecn, length = DATAGRAM.unpack_from(body, at)
        at += DATAGRAM.size
        if "crash" in sys.argv and ecn & SERVER_SIDE:
            sys.exit("the relay was told to crash")
        passed[ecn >> 7] += 1
        departures += DATAGRAM.pack(time, ecn ^ SERVER_SIDE, length) + body[at : at + length]
        at += length
    assert at == len(body)
    return struct.pack("<QBI", NEVER, 1, count) + departures


def main() -> None:
    kind, body = receive()
    assert kind == HELLO
    hello = json.loads(body)
    assert (hello["contract"], hello["role"]) == (1, "proxy")
    if hello["options"]:
        sys.exit(127)
    ready = {"stack": "relay", "version": "relay 1", "driver": "at once", "next_wake": None}
    send(READY, json.dumps(ready).encode())
    passed = [0, 0]
    while True:
        kind, body = receive()
        if kind == FINISH:
            counts = dict(zip(("from_client", "from_server"), passed, strict=True))
            statistics = {
                **counts,
                "place": hello["place"],
                "listen": hello["listen"],
                "next": hello["next_hop"],
            }
            send(BYE, json.dumps({"error": None, "statistics": statistics}).encode())
            return
        assert kind == RUN
        send(RAN, relay(body, passed))


main()
