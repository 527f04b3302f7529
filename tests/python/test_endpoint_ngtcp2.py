"""The ngtcp2 endpoint: its options, its test cases, Retry, its qlog, and GnuTLS made deterministic."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, ClassVar

import laboratory
import pytest
from conftest import installed_or_skip
from laboratory import DELAY_NS, EPOCH_S, OTHER_SEED, ROOT, SIZE, Datagram, Lab, Outcome

pytestmark = pytest.mark.virtual_time

ROUND_TRIP_NS = 2 * DELAY_NS
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


@pytest.mark.parametrize("cc", ["newreno", "cubic", "bbr2"])
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
    hashes = {cc: lab.trial(server={"options": {"cc": cc}}).hash for cc in ("newreno", "cubic", "bbr2")}
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


def play(lab: Lab, testcase: str, count: int = 3, size: int = 3000, **server: Any) -> Outcome:
    """A trial with `count` requests for files of `size`; the client's secrets go to the file `keys`."""
    for i in range(count):
        (lab.folder / "www" / str(i)).write_bytes(i.to_bytes(2, "little") * (size // 2))
    return lab.trial(client=asking(lab, testcase, count), server={"testcase": testcase} | server)


def asking(lab: Lab, testcase: str, count: int) -> dict[str, Any]:
    (lab.folder / "keys").unlink(missing_ok=True)
    requests = [f"https://server:443/{i}" for i in range(count)]
    return {"testcase": testcase, "requests": requests, "keylog": str(lab.folder / "keys")}


def arrived(lab: Lab, count: int = 3) -> bool:
    www, downloads = lab.folder / "www", lab.folder / "downloads"
    return all((downloads / str(i)).read_bytes() == (www / str(i)).read_bytes() for i in range(count))


def secrets(lab: Lab, label: str) -> int:
    return [line.split()[0] for line in (lab.folder / "keys").read_text().splitlines()].count(label)


@pytest.mark.parametrize("testcase", ["handshake", "longrtt", "multiplexing"])
def test_what_is_done_as_in_a_transfer_has_the_same_packets(lab: Lab, testcase: str) -> None:
    outcome = play(lab, testcase)
    assert arrived(lab)
    assert outcome.hash == play(lab, "transfer").hash


def test_many_more_requests_than_streams_may_be_open(lab: Lab) -> None:
    outcome = play(lab, "multiplexing", 2000, 32)
    assert [bye["error"] for bye in outcome.byes] == [None, None]
    assert arrived(lab, 2000)
    assert secrets(lab, "CLIENT_TRAFFIC_SECRET_0") == 1


@pytest.mark.parametrize("lose_every", [0, 7])
@pytest.mark.parametrize(("testcase", "round_trips"), [("resumption", 2), ("zerortt", 1)])
def test_a_second_connection_begins_with_a_ticket(
    lab: Lab, testcase: str, round_trips: int, lose_every: int
) -> None:
    lab.lose_every = lose_every
    outcome = play(lab, testcase)
    client, server = outcome.byes
    assert (client["error"], server["error"]) == (None, None)
    assert arrived(lab)
    assert secrets(lab, "CLIENT_TRAFFIC_SECRET_0") == 2
    first, second, _ = client["requests"]
    assert client["handshake_ns"] < first["first_byte_ns"]
    waited = second["first_byte_ns"] - first["last_byte_ns"]
    assert lose_every or round_trips * ROUND_TRIP_NS < waited < (round_trips + 0.1) * ROUND_TRIP_NS
    assert play(lab, testcase).hash == outcome.hash


def test_a_connection_for_a_ticket_alone(lab: Lab) -> None:
    assert play(lab, "resumption", 1).byes[0]["error"] is None
    assert arrived(lab, 1)
    assert secrets(lab, "CLIENT_TRAFFIC_SECRET_0") == 2


FORGETFUL = """
import sys
sys.path[:0] = [{stack!r}, {family!r}]
import stack, program
stack.IssuedTickets.take = lambda self, label: None
sys.exit(program.main("aioquic", sys.argv[1:]))
"""


def test_early_data_that_are_rejected_are_sent_again(lab: Lab) -> None:
    """The server is an aioquic that issues tickets and knows none of them again."""
    for i in range(3):
        (lab.folder / "www" / str(i)).write_bytes(bytes(3000))
    folders = {
        name: str(ROOT / "endpoints" / folder)
        for name, folder in (("stack", "aioquic"), ("family", "aioquic-family"))
    }
    client = lab.start(role="client", **asking(lab, "zerortt", 3))
    lab.command = [sys.executable, "-c", FORGETFUL.format(**folders), "--virtual-time"]
    outcome = lab.run([client, lab.start(role="server", testcase="zerortt")])
    assert outcome.byes[0]["error"] is None
    assert arrived(lab)
    assert secrets(lab, "CLIENT_EARLY_TRAFFIC_SECRET") == 1
    first, second, _ = outcome.byes[0]["requests"]
    assert second["first_byte_ns"] - first["last_byte_ns"] > 1.9 * ROUND_TRIP_NS


@pytest.mark.parametrize("lose_every", [0, 11])
def test_upload(lab: Lab, lose_every: int) -> None:
    lab.lose_every = lose_every
    size = 200_000
    outcome = play(lab, "upload", size=size)
    assert [bye["error"] for bye in outcome.byes] == [None, None]
    assert arrived(lab)
    for request in outcome.byes[0]["requests"]:
        assert request["bytes"] == size
        assert request["first_byte_ns"] >= outcome.byes[0]["handshake_ns"]
        assert request["last_byte_ns"] > request["first_byte_ns"] + ROUND_TRIP_NS
    assert play(lab, "upload", size=size).hash == outcome.hash


def test_an_upload_larger_than_the_window_arrives(lab: Lab) -> None:
    outcome = play(lab, "upload", size=200_000, options={"window": "50000"})
    assert [bye["error"] for bye in outcome.byes] == [None, None]
    assert arrived(lab)
    assert outcome.virtual_ns > 3 * 200_000 // 50_000 * ROUND_TRIP_NS


def test_an_empty_file_and_one_in_a_folder_are_uploaded(lab: Lab) -> None:
    www, downloads = lab.folder / "www", lab.folder / "downloads"
    (www / "empty").write_bytes(b"")
    (www / "deep" / "er").mkdir(parents=True)
    (www / "deep" / "er" / "file").write_bytes(b"line\nline\n")
    requests = ["https://server:443/empty", "https://server:443/deep/er/file"]
    outcome = lab.trial(client={"testcase": "upload", "requests": requests}, server={"testcase": "upload"})
    assert outcome.byes[0]["error"] is None
    assert (downloads / "empty").read_bytes() == b""
    assert (downloads / "deep" / "er" / "file").read_bytes() == b"line\nline\n"


@pytest.mark.parametrize(("asked", "served"), [("upload", "transfer"), ("transfer", "upload")])
def test_a_server_refuses_the_other_method(lab: Lab, asked: str, served: str) -> None:
    other = lab.folder / "other"
    other.mkdir()
    # An upload's server has no `www`, and a transfer's none to write to.
    folders = {"www": str(lab.folder / "www"), "downloads": str(other)}
    outcome = lab.trial(client={"testcase": asked} | folders, server={"testcase": served} | folders)
    assert "reset by the server" in outcome.byes[0]["error"]
    assert list(other.iterdir()) == []


@pytest.mark.parametrize("link", ["1", "folder"])
def test_an_upload_that_leads_out_is_refused(lab: Lab, link: str) -> None:
    outside = lab.folder / "outside"
    outside.mkdir()
    (outside / "1").write_text("mine")
    (lab.folder / "www" / "folder").mkdir()
    for path in ("0", "1", "folder/1"):
        (lab.folder / "www" / path).write_bytes(bytes(200_000))
    (lab.folder / "downloads" / link).symlink_to(outside / "1" if link == "1" else outside)
    path = "1" if link == "1" else "folder/1"
    requests = ["https://server:443/0", f"https://server:443/{path}"]
    outcome = lab.trial(client={"testcase": "upload", "requests": requests}, server={"testcase": "upload"})
    assert f"/{path}: reset by the server" in outcome.byes[0]["error"]
    assert (outside / "1").read_text() == "mine"
    assert arrived(lab, 1)
