"""What is special to the tquic endpoint: it takes time and random bytes itself; tickets, options, qlog."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import installed_or_skip
from laboratory import (
    BYE,
    DELAY_NS,
    EPOCH_S,
    OTHER_SEED,
    READY,
    RUN,
    SEED,
    SIZE,
    Child,
    Datagram,
    Lab,
    encode_run,
    sent,
)

pytestmark = pytest.mark.virtual_time

PACKET_TYPE, INITIAL, ZERO_RTT = 0xF0, 0xC0, 0xD0  # RFC 9000, section 17.2
ALGORITHMS = ["cubic", "bbr", "bbr3", "copa"]


class Successor:
    """A server, and from the second connection on another one, which does not know the tickets."""

    def __init__(self, first: Child, second: Child) -> None:
        self.children = (first, second)
        self.client_ids: list[bytes] = []

    def send(self, kind: int, body: bytes) -> None:
        if kind != RUN:
            for child in self.children:
                child.send(kind, body)
            return
        until, count = struct.unpack_from("<QI", body)
        shares: tuple[list[Datagram], list[Datagram]] = ([], [])
        for datagram in decode_datagrams(body, 12, count):
            if (
                datagram[2][0] & PACKET_TYPE == INITIAL
                and (source := source_id(datagram[2])) not in self.client_ids
            ):
                self.client_ids.append(source)
            shares[len(self.client_ids) > 1].append(datagram)
        for child, share in zip(self.children, shares, strict=True):
            child.send(RUN, encode_run(until, share))

    def receive(self, wanted: int) -> bytes:
        first, second = (child.receive(wanted) for child in self.children)
        if wanted == READY:
            return first
        if wanted == BYE:
            return second
        (wake, _, count), (later, done, more) = (struct.unpack_from("<QBI", body) for body in (first, second))
        datagrams = decode_datagrams(first, 13, count) + decode_datagrams(second, 13, more)
        rest = encode_run(0, sorted(datagrams, key=lambda datagram: datagram[0]))[12:]
        return struct.pack("<QBI", min(wake, later), done, count + more) + rest

    def leave(self) -> int:
        return max(child.leave() for child in self.children)


def decode_datagrams(body: bytes, at: int, count: int) -> list[Datagram]:
    datagrams = []
    for _ in range(count):
        time, ecn, length = struct.unpack_from("<QBH", body, at)
        datagrams.append((time, ecn, body[at + 11 : at + 11 + length]))
        at += 11 + length
    return datagrams


def source_id(packet: bytes) -> bytes:
    """The Source Connection ID of a packet with a long header (RFC 9000, section 17.2)."""
    at = 6 + packet[5]
    return packet[at + 1 : at + 1 + packet[at]]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, installed_or_skip("tquic").command("virtual-time"))


def files(lab: Lab, count: int, size: int) -> dict[str, Any]:
    """Files to be sent, and a client's changes to ask for them."""
    for i in range(count):
        (lab.folder / "www" / f"{i}").write_bytes(bytes([i % 256]) * size)
    return {"requests": [f"https://server:443/{i}" for i in range(count)]}


def check_files(lab: Lab, count: int) -> None:
    for i in range(count):
        stored = lab.folder / "downloads" / f"{i}"
        assert stored.read_bytes() == (lab.folder / "www" / f"{i}").read_bytes()
        stored.unlink()


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer (RFC 9000, section 16), and where it ends."""
    size = 1 << (data[at] >> 6)
    return int.from_bytes(data[at : at + size], "big") & ((1 << (8 * size - 2)) - 1), at + size


def long_packets(datagram: bytes) -> Iterator[int]:
    """The types of the packets with long headers in a datagram."""
    at = 0
    while at < len(datagram) and datagram[at] & 0x80:
        kind = datagram[at] & PACKET_TYPE
        yield kind
        at += 6 + datagram[at + 5]  # the Destination Connection ID
        at += 1 + datagram[at]  # the Source Connection ID
        for _ in range(2 if kind == INITIAL else 1):  # an Initial packet's token, and the rest of the packet
            length, at = varint(datagram, at)
            at += length


@pytest.mark.parametrize("cc", ALGORITHMS)
def test_the_seed_decides_every_byte(lab: Lab, cc: str) -> None:
    lab.lose_every = 17
    server = {"options": {"cc": cc}}
    first = lab.trial(server=server)
    assert lab.stored() == lab.served()
    assert first.hash == lab.trial(server=server).hash
    assert first.hash != lab.trial(server=server, client={"seed": OTHER_SEED}).hash
    assert first.hash != lab.trial(server={**server, "seed": OTHER_SEED}).hash


@pytest.mark.parametrize(
    "testcase", ["handshake", "longrtt", "multiplexing", "resumption", "zerortt", "upload"]
)
def test_every_test_case_ends_well_and_repeats(lab: Lab, testcase: str) -> None:
    count, size = (500, 50) if testcase == "multiplexing" else (4, 30_000)
    client = {"testcase": testcase, **files(lab, count, size)}
    server: dict[str, Any] = {"testcase": testcase}
    hashes = set()
    for _ in range(2):
        outcome = lab.trial(client=client, server=server)
        assert [bye["error"] for bye in outcome.byes] == [None, None]
        check_files(lab, count)
        hashes.add(outcome.hash)
    assert len(hashes) == 1
    types = [kind for _, _, datagram in lab.sent["client"] for kind in long_packets(datagram)]
    assert (ZERO_RTT in types) == (testcase == "zerortt")


def test_early_data_are_readable_by_their_secret(lab: Lab) -> None:
    keylog = lab.folder / "keys.log"
    client = {"testcase": "zerortt", "keylog": str(keylog), **files(lab, 2, 100)}
    lab.trial(client=client, server={"testcase": "zerortt"})
    check_files(lab, 2)
    labels = Counter(line.split()[0] for line in keylog.read_text().splitlines())
    assert labels["CLIENT_EARLY_TRAFFIC_SECRET"] == 1
    assert labels["CLIENT_TRAFFIC_SECRET_0"] == labels["SERVER_TRAFFIC_SECRET_0"] == 2


@pytest.mark.parametrize("testcase", ["resumption", "zerortt"])
def test_a_server_that_does_not_know_the_ticket_is_asked_all_the_same(lab: Lab, testcase: str) -> None:
    client = lab.start(role="client", testcase=testcase, **files(lab, 4, 30_000))
    servers = [lab.start(role="server", testcase=testcase, seed=seed) for seed in (SEED, OTHER_SEED)]
    outcome = lab.run([client, Successor(*servers)])  # type: ignore[list-item]
    assert [bye["error"] for bye in outcome.byes] == [None, None]
    check_files(lab, 4)


def test_congestion_controls_differ(lab: Lab) -> None:
    lab.lose_every = 29
    hashes = {cc: lab.trial(server={"options": {"cc": cc}}).hash for cc in ALGORITHMS}
    assert len(set(hashes.values())) == len(ALGORITHMS)
    assert lab.trial().hash == hashes["bbr"]


def test_the_initial_window_is_in_packets(lab: Lab) -> None:
    first = {}
    for packets in ("10", "40"):
        log = sent(lab, "server", iw=packets, pacing="off")
        times = Counter(time for time, _, _ in log if 3 * DELAY_NS < time < 5 * DELAY_NS)
        first[packets] = max(times.values())
    assert 8 <= first["10"] <= 11
    assert 38 <= first["40"] <= 41


def test_packets_are_paced_and_need_not_be(lab: Lab) -> None:
    burst = {}
    for pacing in ("on", "off"):
        log = sent(lab, "server", iw="100", pacing=pacing)
        burst[pacing] = max(Counter(time for time, _, _ in log).values())
    assert burst["on"] <= 20 < 80 < burst["off"]


def test_a_threshold_ends_slow_start(lab: Lab) -> None:
    plain = lab.trial(server={"options": {"cc": "cubic"}})
    assert lab.trial(server={"options": {"cc": "cubic", "ssthresh": "20"}}).virtual_ns > plain.virtual_ns


@pytest.mark.parametrize(("mtu", "largest"), [("1200", 1200), (None, 1472)])
def test_packets_grow_unless_their_size_is_given(lab: Lab, mtu: str | None, largest: int) -> None:
    log = sent(lab, "server", **({"mtu": mtu} if mtu else {}))
    assert max(len(payload) for _, _, payload in log) == largest


def test_fewer_acks_when_asked(lab: Lab) -> None:
    assert len(sent(lab, "client", ack="10")) < len(sent(lab, "client")) * 0.8


def test_the_window_bounds_what_is_in_flight(lab: Lab) -> None:
    narrow = lab.trial(client={"options": {"window": "20000"}})
    assert lab.stored() == lab.served()
    assert narrow.virtual_ns > SIZE // 20000 * 2 * DELAY_NS > lab.trial().virtual_ns


@pytest.mark.parametrize(
    "options", [{"ssthresh": "20"}, {"mtu": "1400"}, {"cc": "newreno"}, {"ss": "standard"}]
)
def test_what_tquic_lacks_is_refused(lab: Lab, options: dict[str, str]) -> None:
    for role in ("client", "server"):
        child = lab.start(role=role, options=options)
        with pytest.raises(EOFError):
            child.receive(READY)
        assert child.leave() == 127


def test_qlog_says_when_its_time_starts(lab: Lab) -> None:
    folders = {role: lab.folder / "qlog" / role for role in ("client", "server")}
    for folder in folders.values():
        folder.mkdir()
    lab.trial(**{role: {"qlog": str(folder)} for role, folder in folders.items()})
    starts = {}
    for role, folder in folders.items():
        head = (folder / f"{role}.sqlog").read_text().split("\n", 1)[0]
        fields = json.loads(head.lstrip("\x1e"))["trace"]["common_fields"]
        assert fields["time_format"] == "relative"
        starts[role] = fields["reference_time"]
    first_arrival_ms = DELAY_NS / 1e6 + (len(lab.sent["client"][0][2]) + 28) * 8 / 20_000
    assert starts["client"] == EPOCH_S * 1000
    assert starts["server"] == pytest.approx(EPOCH_S * 1000 + first_arrival_ms, abs=0.001)
