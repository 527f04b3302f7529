"""What is special to the s2n-quic endpoint: its options, its clock, and what it has not."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
import test_endpoint_aioquic as laboratory
from test_endpoint_aioquic import DELAY_NS, OTHER_SEED, READY, SIZE, Datagram, Lab

from bentpipe import stacks
from bentpipe.build import what_is_missing


class Link(laboratory.Direction):
    """A direction that remembers what was sent in it."""

    both: ClassVar[list[Link]] = []

    def __init__(self, lose_every: int) -> None:
        super().__init__(lose_every)
        self.log: list[Datagram] = []
        Link.both.append(self)

    def carry(self, departures: list[Datagram]) -> None:
        self.log += departures
        super().carry(departures)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    stack = stacks.discover()["s2n-quic"]
    if stack.missing("virtual-time"):
        pytest.skip(what_is_missing(stack) or "s2n-quic is not built: bentpipe stacks build s2n-quic")
    monkeypatch.setattr(laboratory, "Direction", Link)
    monkeypatch.setattr(Link, "both", [])
    return Lab(tmp_path, stack.command("virtual-time"))


def sent(lab: Lab, role: str, **options: str) -> list[Datagram]:
    """What `role` with these options sends in a trial that ends well."""
    Link.both.clear()
    byes = lab.trial(**{role: {"options": options}}).byes
    assert [bye["error"] for bye in byes] == [None, None]
    assert lab.stored() == lab.served()
    forward, back = Link.both
    return back.log if role == "client" else forward.log


@pytest.mark.parametrize("cc", ["cubic", "bbr2"])
def test_the_seed_decides_every_byte(lab: Lab, cc: str) -> None:
    lab.lose_every = 17
    server = {"options": {"cc": cc}}
    first = lab.trial(server=server)
    assert lab.stored() == lab.served()
    assert first.hash == lab.trial(server=server).hash
    assert first.hash != lab.trial(server=server, client={"seed": OTHER_SEED}).hash
    assert first.hash != lab.trial(server={**server, "seed": OTHER_SEED}).hash


def test_congestion_controls_differ_and_cubic_is_the_default(lab: Lab) -> None:
    lab.lose_every = 29
    hashes = {cc: lab.trial(server={"options": {"cc": cc}}).hash for cc in ("cubic", "bbr2")}
    assert len(set(hashes.values())) == 2
    assert lab.trial().hash == hashes["cubic"]


def test_slow_starts_differ_and_the_environment_has_no_say(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    (lab.folder / "www" / "file").write_bytes(bytes(8 * SIZE))
    hashes = {ss: lab.trial(server={"options": {"ss": ss}}).hash for ss in ("hystart", "hystart++")}
    assert len(set(hashes.values())) == 2
    monkeypatch.setenv("S2N_UNSTABLE_USE_HYSTART_PP", "1")
    assert lab.trial().hash == hashes["hystart"]


@pytest.mark.parametrize("mtu", [1200, 1300, 1472])
def test_mtu_is_the_size_of_datagrams(lab: Lab, mtu: int) -> None:
    sizes = [len(payload) for _, _, payload in sent(lab, "server", mtu=str(mtu))]
    assert max(sizes) == mtu
    assert sizes.count(mtu) > SIZE / mtu - 1


def test_the_initial_window_counts_packets_of_1200_bytes(lab: Lab) -> None:
    for iw in (10, 40):
        flight = [time for time, _, payload in sent(lab, "server", iw=str(iw)) if len(payload) > 1000]
        first = next(time for time in flight if time > 2 * DELAY_NS)
        assert iw - 2 <= sum(first <= time < first + 2 * DELAY_NS for time in flight) <= iw + 2


def test_fewer_acks_when_asked(lab: Lab) -> None:
    assert len(sent(lab, "client", ack="20")) < len(sent(lab, "client")) < len(sent(lab, "client", ack="1"))


def test_the_window_bounds_what_is_in_flight(lab: Lab) -> None:
    narrow = lab.trial(client={"options": {"window": "30000"}})
    assert lab.stored() == lab.served()
    assert narrow.virtual_ns > SIZE // 30000 * 2 * DELAY_NS > lab.trial().virtual_ns


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize(
    "changes",
    [
        {"testcase": "resumption"},
        {"testcase": "zerortt"},
        {"options": {"cc": "newreno"}},
        {"options": {"cc": "bbr2", "ss": "hystart"}},
        {"options": {"mtu": "1473"}},
        {"options": {"window": str(2**32)}},
        {"options": {"ack": "256"}},
        {"options": {"pacing": "off"}},
    ],
    ids=str,
)
def test_what_it_has_not_is_unsupported(lab: Lab, role: str, changes: dict[str, object]) -> None:
    child = lab.start(role=role, **changes)
    with pytest.raises(EOFError):
        child.receive(READY)
    assert child.leave() == 127
