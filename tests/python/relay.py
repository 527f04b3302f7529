"""A proxy that does nothing: what arrives on one side leaves on the other, in virtual time at once.

With `trial` as an argument it does so over sockets. `crash` makes it end, with a word, at the first datagram
from the server's side.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
from typing import Any

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
    message = memoryview(struct.pack("<IB", len(body), kind) + body)
    while message:
        message = message[os.write(4, message) :]


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


def check(hello: dict[str, Any]) -> None:
    assert (hello["contract"], hello["role"]) == (1, "proxy")
    if hello["options"]:
        sys.exit(127)


def bye(hello: dict[str, Any], passed: list[int]) -> str:
    counts = dict(zip(("from_client", "from_server"), passed, strict=True))
    statistics = {**counts, "place": hello["place"], "listen": hello["listen"], "next": hello["next_hop"]}
    return json.dumps({"version": "relay 1", "error": None, "statistics": statistics})


def over_sockets() -> None:
    """One client, whoever comes first."""
    hello = json.load(sys.stdin)
    check(hello)
    host, port = hello["listen"].split(":")
    near, far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    near.bind((host, int(port)))
    host, port = hello["next_hop"].split(":")
    far.connect((host, int(port)))
    passed = [0, 0]

    def end(*_: object) -> None:
        print(bye(hello, passed), flush=True)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    client: Any = None
    while True:
        for one in select.select([near, far], [], [])[0]:
            if one is near:
                data, client = near.recvfrom(2000)
                far.send(data)
            else:
                data = far.recv(2000)
                if "crash" in sys.argv:
                    sys.exit("the relay was told to crash")
                near.sendto(data, client)
            passed[one is far] += 1


def main() -> None:
    kind, body = receive()
    assert kind == HELLO
    hello = json.loads(body)
    check(hello)
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


if "trial" in sys.argv:
    over_sockets()
else:
    main()
