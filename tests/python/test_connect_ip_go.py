"""Our client and proxy of `masque-ip` with those of connect-ip-go, each in both roles.

Ours live in virtual time, which here goes with the machine's: so they need neither a TUN device nor a network
namespace. Their own packets go over loopback.
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import children
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "bentpipe-masque"
CERTS = ROOT / "endpoints" / "certs"
SOURCES = Path(__file__).parent / "connect_ip_go"

HELLO, READY, RUN, RAN, FINISH, BYE = range(1, 7)
SERVER_SIDE = 0x80
# Starts a program with the descriptors of the contract, whatever their numbers are here.
AT_3_AND_4 = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(one), fcntl.F_DUPFD, 100) for one in sys.argv[1:3]]
for number, pipe in zip((3, 4), pipes, strict=True):
    os.dup2(pipe, number)
os.execv(sys.argv[3], [sys.argv[3], "--virtual-time"])
"""
CLIENT, SERVER = "192.0.2.1", "198.51.100.1"


@pytest.fixture(scope="module")
def connect_ip_go(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their program, built."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go to build connect-ip-go with")
    program = tmp_path_factory.mktemp("connect-ip-go") / "connect-ip-go"
    words = [go, "build", "-o", str(program), "."]
    done = subprocess.run(words, cwd=SOURCES, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"connect-ip-go cannot be built here: {done.stderr.strip()[-300:]}")
    return program


def checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(source: str, destination: str, protocol: int, content: bytes) -> bytes:
    """An IPv4 packet."""
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(content), 0, 0x4000, 64, protocol, 0)
    head += socket.inet_aton(source) + socket.inet_aton(destination)
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + content


def turned_round(inner: bytes) -> bytes:
    return inner[:12] + inner[16:20] + inner[12:16] + inner[20:]


def content(inner: bytes) -> bytes:
    """What no router changes of a packet."""
    return inner[12:]


class Ours:
    """An end of ours, in virtual time."""

    def __init__(self, place: str, own: int, theirs: int, outer: socket.socket) -> None:
        self.place, self.outer, self.ports = place, outer, (own, theirs)
        self.peer = ("127.0.0.1", theirs)  # a client sends from any port, which ours need not know
        questions, self._questions = os.pipe()
        answers_there, answers = os.pipe()
        words = [sys.executable, "-S", "-c", AT_3_AND_4, str(questions), str(answers), str(PROGRAM)]
        self.program = subprocess.Popen(words, pass_fds=(questions, answers))
        os.close(questions)
        os.close(answers)
        self._answers = os.fdopen(answers_there, "rb")
        self.start, self.now, self.next_wake = time.monotonic_ns(), 0, 0
        hello = {
            "contract": 1,
            "role": "proxy",
            "place": place,
            "options": {},
            "seed": "0000000000000007",
            "epoch_unix_s": 946684800,
            "previous_hop": f"{CLIENT}:50000",
            "listen": f"{SERVER}:443",
            "local": f"{CLIENT}:50000",
            "next_hop": f"{SERVER}:443",
            "tunnel": {"local": f"127.0.0.1:{own}", "remote": f"127.0.0.1:{theirs}"},
            "server_name": "server",
            "alpn": ["h3"],
            "certs": str(CERTS),
            "keylog": None,
            "qlog": None,
        }
        kind, _ = self._ask(HELLO, json.dumps(hello).encode())
        assert kind == READY

    def _ask(self, kind: int, body: bytes) -> tuple[int, bytes]:
        os.write(self._questions, struct.pack("<IB", len(body), kind) + body)
        length, kind = struct.unpack("<IB", self._answers.read(5))
        return kind, self._answers.read(length)

    def run(self, arrivals: list[tuple[int, bytes]]) -> list[bytes]:
        """Lives until now; the inner packets that came out. `arrivals`: by their side."""
        at = self.now
        self.now = max(time.monotonic_ns() - self.start, at + 1)
        body = struct.pack("<QI", self.now, len(arrivals))
        for side, payload in arrivals:
            body += struct.pack("<QBH", at, side, len(payload)) + payload
        kind, ran = self._ask(RUN, body)
        assert kind == RAN
        self.next_wake, _, count = struct.unpack_from("<QBI", ran)
        outer_side, found, at = SERVER_SIDE if self.place == "terminal" else 0, [], 13
        for _ in range(count):
            _, ecn, size = struct.unpack_from("<QBH", ran, at)
            payload = ran[at + 11 : at + 11 + size]
            at += 11 + size
            if ecn & SERVER_SIDE == outer_side:
                self.outer.sendto(payload[28:], self.peer)
            else:
                found.append(payload)
        return found

    def outer_arrivals(self) -> list[tuple[int, bytes]]:
        """Packets of the other end that came over loopback, once some have or the program wants to wake."""
        wait_s = (self.next_wake + self.start - time.monotonic_ns()) / 1e9
        self.outer.settimeout(min(max(wait_s, 0.001), 0.05))
        try:
            payload, self.peer = self.outer.recvfrom(2000)
        except TimeoutError:
            return []
        own, theirs = self.ports
        udp = struct.pack(">HHHH", theirs, own, 8 + len(payload), 0) + payload
        side = SERVER_SIDE if self.place == "terminal" else 0
        return [(side, packet("127.0.0.1", "127.0.0.1", 17, udp))]

    def finish(self) -> dict[str, Any]:
        kind, body = self._ask(FINISH, b"")
        assert kind == BYE and self.program.wait() == 0
        bye: dict[str, Any] = json.loads(body)
        return bye


@contextmanager
def loopback() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        yield one


def live_until(ours: Ours, step: Callable[[list[bytes]], list[tuple[int, bytes]] | None]) -> None:
    """Lives until `step`, which gets the inner packets that came out, is content; else it has arrivals."""
    arrivals: list[tuple[int, bytes]] = []

    def lives() -> bool:
        nonlocal arrivals
        found = ours.run([*arrivals, *ours.outer_arrivals()])
        more = step(found)
        arrivals = more or []
        return more is None

    children.wait_for("the other end", lives)


def test_their_client_has_our_proxy_carry_a_packet(connect_ip_go: Path) -> None:
    inner = packet(CLIENT, SERVER, 17, b"\0\7\0\7\0\x0c\0\0ping")
    with loopback() as outer:
        own = outer.getsockname()[1]
        ours = Ours("gateway", own, 50000, outer)
        words = [str(connect_ip_go), "client", str(CERTS / "ca.pem"), f"127.0.0.1:{own}", f"{CLIENT}/32"]
        words.append(inner.hex())
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
            assert client.stdout

            def step(found: list[bytes]) -> list[tuple[int, bytes]] | None:
                if client.poll() is not None:
                    return None
                return [(SERVER_SIDE, turned_round(it)) for it in found]

            live_until(ours, step)
            said = client.stdout.read().splitlines()
    assert said[:3] == ["200", f"assigned {CLIENT}/32", f"route {SERVER} {SERVER} 0"], said
    assert content(bytes.fromhex(said[3].removeprefix("packet "))) == content(turned_round(inner))
    counts = ours.finish()["statistics"]
    assert (counts["received_datagrams_total"], counts["sent_datagrams_total"]) == (1, 1)
    assert (counts["requests_total"], counts["refused_packets_total"]) == (1, 0)


def test_our_client_has_their_proxy_carry_a_packet(connect_ip_go: Path) -> None:
    inner = packet(CLIENT, SERVER, 17, b"\0\7\0\7\0\x0c\0\0ping")
    words = [str(connect_ip_go), "proxy", str(CERTS), f"{CLIENT}/32", SERVER]
    with loopback() as outer, subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout
        try:
            theirs = int(proxy.stdout.readline().rpartition(":")[2])
            ours = Ours("terminal", outer.getsockname()[1], theirs, outer)
            back: list[bytes] = []
            last_sent = 0.0

            def step(found: list[bytes]) -> list[tuple[int, bytes]] | None:
                nonlocal last_sent
                back.extend(found)
                if back:
                    return None
                # A packet may come before its request, and be lost: again and again, as TCP would.
                if time.monotonic() - last_sent < 0.2:
                    return []
                last_sent = time.monotonic()
                return [(0, inner)]

            live_until(ours, step)
        finally:
            proxy.terminate()
    assert content(back[0]) == content(turned_round(inner))
    bye = ours.finish()
    assert bye["error"] is None
    assert bye["statistics"]["requests_total"] == 1
