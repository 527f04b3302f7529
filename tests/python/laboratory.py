"""A coordinator in miniature: endpoint programs in virtual time over a link of 20 Mbit/s and 600 ms."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CERTS = ROOT / "endpoints" / "certs"
AIOQUIC = [sys.executable, str(ROOT / "endpoints" / "aioquic" / "endpoint.py"), "--virtual-time"]
HELLO, READY, RUN, RAN, FINISH, BYE = 1, 2, 3, 4, 5, 6
NEVER = 2**64 - 1
SECOND_NS = 1_000_000_000
DELAY_NS = 300_000_000
HEADERS = 28  # bytes of IPv4 and UDP
SIZE = 256 * 1024
SEED, OTHER_SEED = "00f1e2d3c4b5a697", "00f1e2d3c4b5a698"
EPOCH_S = 946684800

Datagram = tuple[int, int, bytes]  # time in ns, ECN, payload


class Child:
    """An endpoint program with its two pipes."""

    def __init__(self, command: list[str], stderr: Path) -> None:
        ask, self.ask = os.pipe()
        self.answer, answer = os.pipe()
        # The copies are made in this order: a pipe that is number 3 itself must not be overwritten too early.
        spare = os.dup(answer)
        actions: list[tuple[Any, ...]] = [
            (os.POSIX_SPAWN_DUP2, spare, 100),
            (os.POSIX_SPAWN_DUP2, ask, 3),
            (os.POSIX_SPAWN_DUP2, 100, 4),
            (os.POSIX_SPAWN_CLOSE, 100),
            (os.POSIX_SPAWN_OPEN, 2, str(stderr), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ]
        self.pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
        for end in (ask, answer, spare):
            os.close(end)

    def send(self, kind: int, body: bytes) -> None:
        message = memoryview(struct.pack("<IB", len(body), kind) + body)
        while message:
            message = message[os.write(self.ask, message) :]

    def receive(self, wanted: int) -> bytes:
        """The body of the next message; EOFError if there is none."""
        length, kind = struct.unpack("<IB", self._exactly(5))
        assert kind == wanted
        return self._exactly(length)

    def leave(self) -> int:
        """Closes the pipes and waits; the exit code."""
        os.close(self.ask)
        os.close(self.answer)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = os.read(self.answer, count - len(data))
            if not part:
                raise EOFError
            data += part
        return data


@dataclass
class Direction:
    """20 Mbit/s, a constant delay, and the loss of every so manieth packet."""

    lose_every: int = 0
    rate_bps: int = 20_000_000
    free_ns: int = 0
    sent: int = 0
    largest: int = 0  # UDP payload
    flying: list[Datagram] = field(default_factory=list)
    departed: list[Datagram] = field(default_factory=list)

    def carry(self, departures: list[Datagram]) -> None:
        self.departed += departures
        for time, ecn, payload in departures:
            self.sent += 1
            self.largest = max(self.largest, len(payload))
            size = len(payload) + HEADERS
            self.free_ns = max(self.free_ns, time) + size * 8 * SECOND_NS // self.rate_bps
            if not self.lose_every or self.sent % self.lose_every:
                self.flying.append((self.free_ns + DELAY_NS, ecn, payload))

    def due(self, until: int) -> list[Datagram]:
        arriving = [datagram for datagram in self.flying if datagram[0] < until]
        self.flying = self.flying[len(arriving) :]
        return arriving


@dataclass
class Outcome:
    """What a trial left: a hash of every departure, its length, what clients and server reported."""

    hash: str
    virtual_ns: int
    byes: list[dict[str, Any]]
    largest: int  # UDP payload of the server


@dataclass
class Lab:
    """A folder with a file to serve, and how to run clients and a server over a link."""

    folder: Path
    command: list[str] = field(default_factory=lambda: list(AIOQUIC))
    lose_every: int = 0
    sent: dict[str, list[Datagram]] = field(default_factory=dict)  # in the last run, by role

    def __post_init__(self) -> None:
        for name in ("www", "downloads", "qlog"):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "www" / "file").write_bytes(Random(1).randbytes(SIZE))

    def hello(self, role: str, **changes: Any) -> dict[str, Any]:
        client, ends = role == "client", ("192.0.2.1:50000", "198.51.100.1:443")
        reads = client == (changes.get("testcase") == "upload")
        return {
            "contract": 1,
            "role": role,
            "testcase": "transfer",
            "options": {},
            "seed": SEED,
            "requests": ["https://server:443/file"] if client else [],
            "epoch_unix_s": EPOCH_S,
            "local": ends[not client],
            "remote": ends[client],
            "www": str(self.folder / "www") if reads else None,
            "downloads": None if reads else str(self.folder / "downloads"),
            "certs": str(CERTS),
            "keylog": None,
            "qlog": None,
        } | changes

    def start(self, **changes: Any) -> Child:
        child = Child(self.command, self.folder / f"stderr-{changes.get('role')}")
        child.send(HELLO, json.dumps(self.hello(**changes)).encode())
        return child

    def trial(self, client: dict[str, Any] | None = None, server: dict[str, Any] | None = None) -> Outcome:
        """One client against one server."""
        ends = (("client", client or {}), ("server", server or {}))
        return self.run([self.start(role=role, **changes) for role, changes in ends])

    def run(self, children: list[Child]) -> Outcome:
        """Clients against a server (last). Every client hears all that the server sends."""
        forward, back = Direction(self.lose_every), Direction(self.lose_every)
        log, now, dones = hashlib.sha256(), 0, [False]
        wakes = [json.loads(child.receive(READY))["next_wake"] for child in children]
        while not all(dones):
            assert now < 600 * SECOND_NS
            earliest = [NEVER if wake is None else wake for wake in wakes]
            earliest += [direction.flying[0][0] for direction in (forward, back) if direction.flying]
            assert min(earliest) < NEVER, "nobody will ever wake"
            until = min(earliest) + DELAY_NS
            arrivals = [forward.due(until)] * (len(children) - 1) + [back.due(until)]
            for child, datagrams in zip(children, arrivals, strict=True):
                child.send(RUN, encode_run(until, datagrams))
            rans = [decode_ran(child.receive(RAN), now, until) for child in children]
            log.update(repr(rans).encode())
            back.carry(sorted((datagram for ran in rans[:-1] for datagram in ran[2]), key=lambda one: one[0]))
            forward.carry(rans[-1][2])
            wakes, dones, now = [ran[0] for ran in rans], [ran[1] for ran in rans], until
        self.sent = {"client": back.departed, "server": forward.departed}
        return Outcome(log.hexdigest(), now, [finish(child) for child in children], forward.largest)

    def stored(self) -> bytes:
        return (self.folder / "downloads" / "file").read_bytes()

    def served(self) -> bytes:
        return (self.folder / "www" / "file").read_bytes()


def sent(lab: Lab, role: str, **options: str) -> list[Datagram]:
    """What `role` with these options sends in a trial that ends well."""
    byes = lab.trial(**{role: {"options": options}}).byes
    assert [bye["error"] for bye in byes] == [None, None]
    assert lab.stored() == lab.served()
    return lab.sent[role]


def finish(child: Child) -> dict[str, Any]:
    child.send(FINISH, b"")
    bye: dict[str, Any] = json.loads(child.receive(BYE))
    assert child.leave() == 0
    return bye


def encode_run(until: int, datagrams: list[Datagram]) -> bytes:
    parts = [struct.pack("<QI", until, len(datagrams))]
    parts += [struct.pack("<QBH", time, ecn, len(payload)) + payload for time, ecn, payload in datagrams]
    return b"".join(parts)


def decode_ran(body: bytes, now: int, until: int) -> tuple[int, bool, list[Datagram]]:
    """next_wake, done and departures, checked against the contract."""
    wake, done, count = struct.unpack_from("<QBI", body)
    departures: list[Datagram] = []
    at, last = 13, now
    for _ in range(count):
        time, ecn, length = struct.unpack_from("<QBH", body, at)
        assert last <= time < until
        departures.append((time, ecn, body[at + 11 : at + 11 + length]))
        at, last = at + 11 + length, time
    assert at == len(body)
    assert wake >= until
    assert done in (0, 1)
    return wake, bool(done), departures
