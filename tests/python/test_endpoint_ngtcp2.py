"""What is special to the ngtcp2 endpoint: its options, Retry, its qlog, and GnuTLS made deterministic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import laboratory
import pytest
from conftest import installed_or_skip
from laboratory import DELAY_NS, EPOCH_S, OTHER_SEED, SIZE, Datagram, Lab

LONG_HEADER_TYPE, RETRY = 0xF0, 0xF0  # RFC 9000, section 17.2.5


class Link(laboratory.Direction):
    """A direction that remembers what was sent in it, and may lose its first datagram."""

    both: ClassVar[list[Link]] = []
    lose_first: ClassVar[bool] = False

    def __init__(self, lose_every: int) -> None:
        super().__init__(lose_every)
        self.log: list[Datagram] = []
        Link.both.append(self)

    def carry(self, departures: list[Datagram]) -> None:
        lost = Link.lose_first and not self.log
        self.log += departures
        super().carry(departures[1:] if lost else departures)


def command_of(name: str) -> list[str]:
    return installed_or_skip(name).command("virtual-time")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(laboratory, "Direction", Link)
    monkeypatch.setattr(Link, "both", [])
    monkeypatch.setattr(Link, "lose_first", False)
    return Lab(tmp_path, command_of("ngtcp2"))


def sent(lab: Lab, role: str, **options: str) -> list[Datagram]:
    """What `role` with these options sends in a trial that ends well."""
    Link.both.clear()
    byes = lab.trial(**{role: {"options": options}}).byes
    assert [bye["error"] for bye in byes] == [None, None]
    assert lab.stored() == lab.served()
    forward, back = Link.both
    return back.log if role == "client" else forward.log


@pytest.mark.parametrize("cc", ["reno", "cubic", "bbr"])
def test_the_seed_decides_every_byte(lab: Lab, cc: str) -> None:
    lab.lose_every = 17
    server = {"options": {"cc": cc}}
    first = lab.trial(server=server)
    assert lab.stored() == lab.served()
    assert first.hash == lab.trial(server=server).hash
    assert first.hash != lab.trial(server=server, client={"seed": OTHER_SEED}).hash
    assert first.hash != lab.trial(server={**server, "seed": OTHER_SEED}).hash


def test_congestion_controls_differ(lab: Lab) -> None:
    lab.lose_every = 29
    hashes = {cc: lab.trial(server={"options": {"cc": cc}}).hash for cc in ("reno", "cubic", "bbr")}
    assert len(set(hashes.values())) == 3
    assert lab.trial().hash == hashes["cubic"]


@pytest.mark.parametrize("mtu", [1200, 1300])
def test_mtu_is_the_size_of_datagrams(lab: Lab, mtu: int) -> None:
    assert max(len(payload) for _, _, payload in sent(lab, "server", mtu=str(mtu))) == mtu


def test_bursts_are_bounded(lab: Lab) -> None:
    longest = {}
    for burst in ("default", "1", "4"):
        options = {} if burst == "default" else {"burst": burst}
        times = [time for time, _, _ in sent(lab, "server", **options) if time > 5 * DELAY_NS]
        longest[burst] = max(times.count(time) for time in times)
    assert longest["4"] <= 4 + 1  # an ACK alone may follow
    assert longest["1"] <= 1 + 1
    assert longest["default"] > 10


def test_fewer_acks_when_asked(lab: Lab) -> None:
    assert len(sent(lab, "client", ack="10")) < len(sent(lab, "client")) / 2


def test_the_window_bounds_what_is_in_flight(lab: Lab) -> None:
    narrow = lab.trial(client={"options": {"window": "30000"}})
    assert lab.stored() == lab.served()
    assert narrow.virtual_ns > SIZE // 30000 * 2 * DELAY_NS > lab.trial().virtual_ns


def test_a_client_hello_without_its_start_is_answered_with_retry(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Lab(lab.folder, command_of("quic-go")).start(role="client")
    monkeypatch.setattr(Link, "lose_first", True)
    outcome = lab.run([client, lab.start(role="server")])
    forward, back = Link.both
    assert back.log[0][0] == back.log[1][0], "quic-go no longer spreads its ClientHello over two datagrams"
    assert forward.log[0][2][0] & LONG_HEADER_TYPE == RETRY
    assert [bye["error"] for bye in outcome.byes] == [None, None]
    assert lab.stored() == lab.served()


def test_qlog_says_when_its_time_starts(lab: Lab) -> None:
    folders = {role: lab.folder / "qlog" / role for role in ("client", "server")}
    for folder in folders.values():
        folder.mkdir()
    lab.trial(**{role: {"qlog": str(folder)} for role, folder in folders.items()})
    starts = {}
    for role, folder in folders.items():
        head = (folder / f"{role}.sqlog").read_text().split("\n", 1)[0]
        starts[role] = json.loads(head.lstrip("\x1e"))["trace"]["common_fields"]["reference_time"]
    first_arrival_ms = DELAY_NS / 1e6 + (len(Link.both[1].log[0][2]) + 28) * 8 / 20_000
    assert starts["client"] == EPOCH_S * 1000
    assert starts["server"] == pytest.approx(EPOCH_S * 1000 + first_arrival_ms, abs=0.001)
