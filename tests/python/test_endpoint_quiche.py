"""What is special to the quiche endpoint: time and randomness that it takes itself, tickets, options."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import laboratory
import pytest
from conftest import installed_or_skip
from laboratory import DELAY_NS, OTHER_SEED, READY, SIZE, Datagram, Lab, sent

pytestmark = pytest.mark.virtual_time

PACKET_TYPE, INITIAL, ZERO_RTT = 0xF0, 0xC0, 0xD0  # RFC 9000, section 17.2
MTU = 1350


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, installed_or_skip("quiche").command("virtual-time"))


def exchange(
    lab: Lab, testcase: str, count: int, size: int, server: str | None = None, keylog: str | None = None
) -> tuple[str, list[Datagram]]:
    """A trial of a test case that ends well, with so many files: its hash, and what the client sent."""
    www, downloads = lab.folder / "www", lab.folder / "downloads"
    names = [f"{testcase}{i}" for i in range(count)]
    for i, name in enumerate(names):
        (www / name).write_bytes(bytes([i % 256]) * size)
    ends: dict[str, dict[str, Any]] = {
        "client": {"testcase": testcase, "keylog": keylog},
        "server": {"testcase": server or testcase},
    }
    ends["client"]["requests"] = [f"https://server:443/{name}" for name in names]
    outcome = lab.trial(**ends)
    assert [bye["error"] for bye in outcome.byes] == [None, None]
    for name in names:
        assert (downloads / name).read_bytes() == (www / name).read_bytes()
        (downloads / name).unlink()
    return outcome.hash, lab.sent["client"]


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer (RFC 9000, section 16), and where it ends."""
    size = 1 << (data[at] >> 6)
    return int.from_bytes(data[at : at + size], "big") & ((1 << (8 * size - 2)) - 1), at + size


def long_packets(log: list[Datagram]) -> list[tuple[int, bytes]]:
    """Type and Destination Connection ID of every packet with a long header (RFC 9000, section 17.2)."""
    packets = []
    for _, _, datagram in log:
        at = 0
        while at < len(datagram) and datagram[at] & 0x80:
            kind, size = datagram[at] & PACKET_TYPE, datagram[at + 5]
            packets.append((kind, datagram[at + 6 : at + 6 + size]))
            at += 6 + size
            at += 1 + datagram[at]
            if kind == INITIAL:
                size, at = varint(datagram, at)
                at += size
            size, at = varint(datagram, at)
            at += size
    return packets


@pytest.mark.parametrize("cc", ["newreno", "cubic", "bbr2"])
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
    count, size = (250, 50) if testcase == "multiplexing" else (4, 30_000)
    first, log = exchange(lab, testcase, count, size)
    assert first == exchange(lab, testcase, count, size)[0]
    packets = long_packets(log)
    assert (ZERO_RTT in [kind for kind, _ in packets]) == (testcase == "zerortt")
    connection_ids = {connection_id for kind, connection_id in packets if kind == INITIAL}
    connections = 2 if testcase in ("resumption", "zerortt") else 1
    assert len(connection_ids) == 2 * connections  # the one that the client made up, and the server's


def test_early_data_are_readable_by_their_secret(lab: Lab) -> None:
    keylog = lab.folder / "keys.log"
    exchange(lab, "zerortt", 4, 30_000, keylog=str(keylog))
    labels = Counter(line.split()[0] for line in keylog.read_text().splitlines())
    assert labels["CLIENT_EARLY_TRAFFIC_SECRET"] == 1
    assert labels["CLIENT_TRAFFIC_SECRET_0"] == labels["SERVER_TRAFFIC_SECRET_0"] == 2


def test_a_ticket_that_allows_no_early_data_resumes_all_the_same(lab: Lab) -> None:
    _, log = exchange(lab, "zerortt", 4, 30_000, server="transfer")
    assert ZERO_RTT not in [kind for kind, _ in long_packets(log)]


def test_congestion_controls_and_slow_starts_differ(lab: Lab) -> None:
    lab.lose_every = 29
    variants = [{"cc": "newreno"}, {"cc": "cubic"}, {"cc": "bbr2"}]
    hashes = [lab.trial(server={"options": options}).hash for options in variants]
    assert len(set(hashes)) == 3
    assert lab.trial().hash == hashes[1]
    assert lab.trial(server={"options": {"ss": "hystart++"}}).hash == hashes[1]


@pytest.mark.parametrize("mtu", [1200, MTU, 1400])
def test_mtu_is_the_size_of_datagrams(lab: Lab, mtu: int) -> None:
    options = {"mtu": str(mtu)}
    lab.trial(client={"options": options}, server={"options": options})
    assert lab.stored() == lab.served()
    assert max(len(payload) for _, _, payload in lab.sent["server"]) == mtu


def test_the_initial_window_is_in_packets(lab: Lab) -> None:
    first = {}
    for packets in ("10", "40"):
        times = Counter(time for time, _, _ in sent(lab, "server", iw=packets) if time > 3 * DELAY_NS)
        first[packets] = min(times.items())[1]
    assert first["10"] <= 11
    assert 40 <= first["40"] <= 41


def test_bbr2_is_paced_and_need_not_be(lab: Lab) -> None:
    burst = {}
    for pacing in ("on", "off"):
        log = sent(lab, "server", cc="bbr2", iw="40", pacing=pacing)
        burst[pacing] = max(Counter(time for time, _, _ in log).values())
    assert burst["on"] <= 11  # ten in a burst; an ACK alone may follow
    assert burst["off"] >= 40


@pytest.mark.parametrize(
    "options", [{"cc": "bbr2", "ss": "standard"}, {"pacing": "on"}, {"cc": "bbr"}, {"ss": "hystart"}]
)
def test_what_quiche_lacks_is_refused(lab: Lab, options: dict[str, str]) -> None:
    for role in ("client", "server"):
        child = lab.start(role=role, options=options)
        with pytest.raises(EOFError):
            child.receive(READY)
        assert child.leave() == 127


def test_ack_counts_datagrams_where_files_arrive(lab: Lab) -> None:
    at_once, few = sent(lab, "client"), sent(lab, "client", ack="10")
    assert len(at_once) > SIZE // MTU
    assert len(few) < len(at_once) / 4
    everything = lab.trial(server={"options": {"ack": "10"}}).hash
    assert everything == lab.trial().hash


def test_bbr2_believes_in_no_round_trip_longer_than_the_assumed_one(lab: Lab) -> None:
    """As its README says. When this fails quiche has got better, and the README is to be mended."""
    assert 2 * DELAY_NS > 333_000_000
    assumed = {
        rtt: lab.trial(server={"options": {"cc": "bbr2", "initial_rtt": rtt}}) for rtt in ("333", "700")
    }
    assert assumed["333"].hash == lab.trial(server={"options": {"cc": "bbr2"}}).hash
    assert assumed["700"].virtual_ns < assumed["333"].virtual_ns - 2 * DELAY_NS


def test_a_client_that_hears_nothing_gives_up(lab: Lab) -> None:
    child = lab.start(role="client")
    child.receive(READY)
    now, wake, done = 0, 0, False
    while not done:
        until = wake + DELAY_NS
        child.send(laboratory.RUN, laboratory.encode_run(until, []))
        wake, done, _ = laboratory.decode_ran(child.receive(laboratory.RAN), now, until)
        now = until
    bye = laboratory.finish(child)
    assert (bye["error"], bye["handshake_ns"]) == ("idle timeout", None)
    assert now >= 30 * laboratory.SECOND_NS


def test_the_window_bounds_what_is_in_flight(lab: Lab) -> None:
    narrow = lab.trial(client={"options": {"window": "30000"}})
    assert lab.stored() == lab.served()
    assert narrow.virtual_ns > SIZE // 30000 * 2 * DELAY_NS > lab.trial().virtual_ns


def test_qlog_is_in_virtual_time(lab: Lab) -> None:
    folders = {role: lab.folder / "qlog" / role for role in ("client", "server")}
    for folder in folders.values():
        folder.mkdir()
    outcome = lab.trial(**{role: {"qlog": str(folder)} for role, folder in folders.items()})
    for role, folder in folders.items():
        head, *events = [
            json.loads(line) for line in (folder / f"{role}.sqlog").read_text().split("\x1e")[1:]
        ]
        reference = head["trace"]["common_fields"]["reference_time"]
        assert reference["wall_clock_time"].startswith("2000-01-01T00:00:00")
        assert events[-1]["time"] == pytest.approx(outcome.virtual_ns / 1e6, abs=4 * DELAY_NS / 1e6)
