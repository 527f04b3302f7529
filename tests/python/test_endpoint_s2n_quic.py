"""What is special to the s2n-quic endpoint: its options, its clock, and what it has not."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import laboratory
import pytest
from conftest import installed_or_skip
from laboratory import DELAY_NS, EPOCH_S, OTHER_SEED, RAN, READY, RUN, SECOND_NS, SIZE, Lab, sent

pytestmark = pytest.mark.virtual_time


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, installed_or_skip("s2n-quic").command("virtual-time"))


def test_the_version_is_the_one_that_is_locked(lab: Lab) -> None:
    child = lab.start(role="server")
    name, version = json.loads(child.receive(READY))["version"].split()
    laboratory.finish(child)
    locked = tomllib.loads((laboratory.ROOT / "endpoints" / "s2n-quic" / "Cargo.lock").read_text())["package"]
    assert [package["version"] for package in locked if package["name"] == name] == [version]


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
    (lab.folder / "www" / "file").write_bytes(bytes(40 * SIZE))
    # More than the path holds in the second round, so that its delay grows, and credit for all of it.
    large, client = {"iw": "800"}, {"options": {"window": "100000000"}}
    hashes = {ss: lab.trial(client, {"options": {**large, "ss": ss}}).hash for ss in ("hystart", "hystart++")}
    assert len(set(hashes.values())) == 2
    monkeypatch.setenv("S2N_UNSTABLE_USE_HYSTART_PP", "1")
    assert lab.trial(client, {"options": large}).hash == hashes["hystart"]


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


def test_the_window_bounds_what_is_in_flight(lab: Lab) -> None:
    narrow = lab.trial(client={"options": {"window": "30000"}})
    assert lab.stored() == lab.served()
    assert narrow.virtual_ns > SIZE // 30000 * 2 * DELAY_NS > lab.trial().virtual_ns


def test_more_requests_than_streams_are_all_answered(lab: Lab) -> None:
    names = [f"small{i}" for i in range(250)]
    for i, name in enumerate(names):
        (lab.folder / "www" / name).write_bytes(bytes([i]) * i)
    case = {"testcase": "multiplexing"}
    client = {**case, "requests": [f"https://server:443/{name}" for name in names]}
    outcome = lab.trial(client, case)
    assert [bye["error"] for bye in outcome.byes] == [None, None]
    for name in names:
        assert (lab.folder / "downloads" / name).read_bytes() == (lab.folder / "www" / name).read_bytes()
    assert outcome.hash == lab.trial(client, case).hash


def test_a_file_is_sent_to_the_server(lab: Lab) -> None:
    case = {"testcase": "upload"}
    byes = lab.trial(case, case).byes
    assert [bye["error"] for bye in byes] == [None, None]
    assert lab.stored() == lab.served()


def test_qlog_changes_no_packet_and_has_virtual_time(lab: Lab) -> None:
    folder = lab.folder / "qlog"
    logged = lab.trial({"qlog": str(folder)}, {"qlog": str(folder)})
    assert logged.hash == lab.trial().hash
    for role in ("client", "server"):
        head, *events = [
            json.loads(line) for line in (folder / f"{role}.sqlog").read_text().split("\x1e") if line
        ]
        assert head["trace"]["common_fields"]["reference_time"] == EPOCH_S * 1000
        times = [event["time"] for event in events]
        assert times == sorted(times)
        assert 0 <= times[0] < times[-1] <= logged.virtual_ns / 1e6
        names = {event["name"] for event in events}
        assert {"transport:packet_sent", "transport:packet_received", "recovery:metrics_updated"} <= names


def test_a_handshake_is_given_up_after_ten_seconds(lab: Lab) -> None:
    child = lab.start(role="client")
    child.receive(READY)
    now, wake, done = 0, 0, False
    while not done:
        until = wake + DELAY_NS
        child.send(RUN, laboratory.encode_run(until, []))
        wake, done, _ = laboratory.decode_ran(child.receive(RAN), now, until)
        now = until
    assert laboratory.finish(child)["error"] == "handshake timeout"
    assert 10 <= now / SECOND_NS < 11


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
        {"options": {"ack": "2"}},
        {"options": {"pacing": "off"}},
    ],
    ids=str,
)
def test_what_it_has_not_is_unsupported(lab: Lab, role: str, changes: dict[str, object]) -> None:
    child = lab.start(role=role, **changes)
    with pytest.raises(EOFError):
        child.receive(READY)
    assert child.leave() == 127
