"""The aioquic endpoint against `endpoints/CONTRACT.md`: in virtual time and over sockets."""

from __future__ import annotations

import contextlib
import json
import os
import random
import runpy
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import children
import pytest
from aioquic.quic.rangeset import RangeSet
from laboratory import (
    AIOQUIC,
    CERTS,
    DELAY_NS,
    EPOCH_S,
    HELLO,
    OTHER_SEED,
    RAN,
    READY,
    RUN,
    SECOND_NS,
    SEED,
    SIZE,
    Child,
    Lab,
    decode_ran,
    encode_run,
    finish,
)

from bentpipe import paths
from bentpipe.stacks import loopback

pytestmark = pytest.mark.virtual_time


def test_a_reply_arrives_and_the_seed_decides_every_byte(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    first = lab.trial()
    assert lab.stored() == lab.served()
    again = lab.trial()
    other = lab.trial(client={"seed": OTHER_SEED})
    assert lab.stored() == lab.served()
    assert first.hash == again.hash
    assert first.hash != other.hash


def test_bye_tells_when_what_came(tmp_path: Path) -> None:
    client, server = Lab(tmp_path).trial().byes
    request = client["requests"][0]
    assert client["error"] is None
    assert server == {"handshake_ns": None, "requests": [], "error": None}
    assert (request["path"], request["bytes"]) == ("/file", SIZE)
    assert 2 * DELAY_NS < client["handshake_ns"] < 3 * DELAY_NS
    assert client["handshake_ns"] + 2 * DELAY_NS < request["first_byte_ns"] < request["last_byte_ns"]


def test_ready_says_who_and_how(tmp_path: Path) -> None:
    for role, next_wake in (("client", 0), ("server", None)):
        child = Lab(tmp_path).start(role=role)
        ready = json.loads(child.receive(READY))
        assert ready["stack"] == "aioquic"
        assert ready["version"].startswith("aioquic 1.")
        assert ready["driver"]
        assert ready["next_wake"] == next_wake
        finish(child)


def test_losses_are_made_good_and_repeat(tmp_path: Path) -> None:
    lab = Lab(tmp_path, lose_every=17)
    first = lab.trial()
    assert lab.stored() == lab.served()
    assert first.hash == lab.trial().hash


def test_the_shortcut_changes_no_packet(tmp_path: Path) -> None:
    for lose_every in (0, 17):
        lab = Lab(tmp_path, lose_every=lose_every)
        plain = Lab(tmp_path, [*AIOQUIC, "--no-shortcut"], lose_every)
        for client in ({}, {"options": {"window": "20000"}}):
            assert lab.trial(client=client).hash == plain.trial(client=client).hash
        upload = {"testcase": "upload"}
        assert lab.trial(client=upload, server=upload).hash == plain.trial(client=upload, server=upload).hash


def test_quick_additions_leave_the_ranges_that_aioquic_leaves() -> None:
    file = paths.endpoints() / "aioquic" / "quick_ranges.py"
    quick = runpy.run_path(str(file))["add"]
    chance = random.Random(1)
    for _ in range(1000):
        ours, aioquics = RangeSet(), RangeSet()
        for _ in range(30):
            start, length = chance.randrange(60), chance.randrange(10)
            stop = start + length if length else None
            quick(ours, start, stop)
            aioquics.add(start, stop)
            assert list(ours) == list(aioquics)


def test_one_server_serves_two_connections(tmp_path: Path) -> None:
    lab, second = Lab(tmp_path), tmp_path / "second"
    second.mkdir()
    clients = [lab.start(role="client"), lab.start(role="client", seed=OTHER_SEED, downloads=str(second))]
    outcome = lab.run([*clients, lab.start(role="server")])
    assert [bye["error"] for bye in outcome.byes] == [None, None, None]
    assert lab.stored() == lab.served()
    assert (second / "file").read_bytes() == lab.served()


def test_many_small_replies_share_packets_and_repeat(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    names = [f"small{i}" for i in range(40)]
    for i, name in enumerate(names):
        (tmp_path / "www" / name).write_bytes(bytes([i]) * 30 * i)
    client = {"requests": [f"https://server:443/{name}" for name in names]}
    hashes = {lab.trial(client=client).hash for _ in range(3)}
    for name in names:
        assert (tmp_path / "downloads" / name).read_bytes() == (tmp_path / "www" / name).read_bytes()
    assert len(hashes) == 1


@pytest.mark.parametrize("path", ["absent", "../secret", "leads-out", ""])
def test_a_path_that_is_not_there_is_reset(tmp_path: Path, path: str) -> None:
    lab = Lab(tmp_path)
    (tmp_path / "secret").write_text("not to be served")
    (tmp_path / "www" / "leads-out").symlink_to(tmp_path / "secret")
    url = f"https://server:443/{path}"
    client = lab.trial(client={"requests": [url, "https://server:443/file"]}).byes[0]
    assert [request["bytes"] for request in client["requests"]] == [0, SIZE]
    assert "reset by peer" in client["error"]
    assert lab.stored() == lab.served()
    assert [file.name for file in (tmp_path / "downloads").iterdir()] == ["file"]


def test_a_client_that_hears_nothing_gives_up(tmp_path: Path) -> None:
    child = Lab(tmp_path).start(role="client")
    child.receive(READY)
    now, wake, done = 0, 0, False
    while not done:
        until = wake + DELAY_NS
        child.send(RUN, encode_run(until, []))
        wake, done, _ = decode_ran(child.receive(RAN), now, until)
        now = until
    bye = finish(child)
    assert bye["error"] == "idle timeout"
    assert bye["handshake_ns"] is None
    assert now >= 60 * SECOND_NS


def test_initial_window(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    default, large = lab.trial(), lab.trial(server={"options": {"iw": "100"}})
    assert large.virtual_ns < default.virtual_ns - 2 * DELAY_NS
    assert lab.trial(server={"options": {"iw": "10"}}).hash == default.hash


def test_probe_timeouts_can_be_losses_as_they_once_were(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    default = lab.trial()
    assert lab.trial(server={"options": {"pto": "probe"}}).hash == default.hash
    once = lab.trial(server={"options": {"pto": "loss"}})
    assert once.virtual_ns > default.virtual_ns + 2 * DELAY_NS


def test_congestion_control(tmp_path: Path) -> None:
    lab = Lab(tmp_path, lose_every=29)
    default = lab.trial()
    assert lab.trial(server={"options": {"cc": "newreno"}}).hash == default.hash
    assert lab.trial(server={"options": {"cc": "cubic"}}).hash != default.hash


def test_mtu(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    default = lab.trial()
    assert default.largest == 1200
    assert lab.trial(server={"options": {"mtu": "1200"}}).hash == default.hash
    assert lab.trial(server={"options": {"mtu": "1472"}}).largest == 1472
    assert lab.stored() == lab.served()


def test_flow_control_window(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    assert lab.trial(client={"options": {"window": "1048576"}}).hash == lab.trial().hash
    narrow = lab.trial(client={"options": {"window": "2048"}}).byes[0]["requests"][0]
    wide = lab.trial().byes[0]["requests"][0]
    assert narrow["last_byte_ns"] > wide["last_byte_ns"] + 2 * DELAY_NS


def test_logs_have_virtual_time_and_change_no_packet(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    plain = lab.trial()
    logs = {"qlog": str(tmp_path / "qlog"), "keylog": str(tmp_path / "keys")}
    logged = lab.trial(client=logs, server={"qlog": logs["qlog"]})
    assert logged.hash == plain.hash
    traces = [json.loads(file.read_text())["traces"][0] for file in (tmp_path / "qlog").glob("*.qlog")]
    assert sorted(trace["vantage_point"]["type"] for trace in traces) == ["client", "server"]
    for trace in traces:
        times = [event["time"] for event in trace["events"]]
        assert times == sorted(times)
        assert EPOCH_S * 1000 <= times[0] < times[-1] <= EPOCH_S * 1000 + logged.virtual_ns / 1e6
    labels = {line.split()[0] for line in (tmp_path / "keys").read_text().splitlines()}
    assert {"CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"} <= labels


UNSUPPORTED: list[dict[str, Any]] = [
    {"role": "proxy"},
    {"testcase": "no-such-test"},
    {"options": {"colour": "blue"}},
    {"options": {"cc": "bbr"}},
    {"options": {"cc": "reno"}},
    {"options": {"mtu": "1199"}},
    {"options": {"mtu": "1473"}},
    {"options": {"iw": "0"}},
    {"options": {"iw": "ten"}},
    {"options": {"pto": "lost"}},
    {"options": {"window": "-1"}},
    {"options": {"window": "9" * 30}},
    {"contract": 2},
]


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize("changes", UNSUPPORTED, ids=str)
def test_what_is_not_supported_exits_with_127_instead_of_ready(
    tmp_path: Path, role: str, changes: dict[str, Any]
) -> None:
    child = Lab(tmp_path).start(**{"role": role} | changes)
    with pytest.raises(EOFError):
        child.receive(READY)
    assert child.leave() == 127


def test_a_program_whose_coordinator_goes_away_exits(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    waiting = lab.start(role="server")
    waiting.receive(READY)
    assert waiting.leave() != 127
    running = lab.start(role="client")
    running.receive(READY)
    running.send(RUN, encode_run(DELAY_NS, []))
    running.receive(RAN)
    os.write(running.ask, b"\x01\x00")  # half a message
    assert running.leave() not in (0, 127)


def greeting(folder: Path) -> dict[str, Any]:
    return {
        "contract": 1, "role": "client", "testcase": "transfer", "requests": ["https://server:443/1"],
        "options": {}, "seed": SEED, "epoch_unix_s": EPOCH_S, "local": "192.0.2.1:50000",
        "remote": "198.51.100.1:443", "www": None, "downloads": str(folder), "certs": str(CERTS),
        "keylog": None, "qlog": None,
    }  # fmt: skip


def refuses(folder: Path, kind: int, body: bytes, length: int | None = None) -> str:
    """What a client says of a message behind HELLO (or in its place) that the contract does not allow."""
    stderr = folder / "stderr"
    child = Child(AIOQUIC, stderr)
    if kind != HELLO:
        child.send(HELLO, json.dumps(greeting(folder)).encode())
        child.receive(READY)
        child.send(RUN, encode_run(1000, []))
        child.receive(RAN)
    os.write(child.ask, struct.pack("<IB", len(body) if length is None else length, kind) + body)
    with pytest.raises(EOFError):
        child.receive(RAN)
    assert child.leave() == 1
    text = stderr.read_text()
    assert text.startswith("aioquic: ") and text.count("\n") == 1, text
    return text


@pytest.mark.parametrize(
    ("until", "times", "message"),
    [
        (999, [], "RUN until 999 ns, but it is 1000 ns already"),
        (5000, [3000, 2000], "an arrival at 2000 ns, which is not within [3000, 5000)"),
        (5000, [999], "an arrival at 999 ns, which is not within [1000, 5000)"),
        (5000, [5000], "an arrival at 5000 ns"),
    ],
)
def test_a_run_that_is_out_of_order_is_refused(
    tmp_path: Path, until: int, times: list[int], message: str
) -> None:
    assert message in refuses(tmp_path, RUN, encode_run(until, [(time, 0, b"x") for time in times]))


def test_a_run_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    whole = encode_run(5000, [(2000, 0, b"payload")])
    assert "RUN ends within a datagram" in refuses(tmp_path, RUN, whole[:-1])
    assert "RUN of 3 bytes" in refuses(tmp_path, RUN, whole[:3])
    assert "RUN has 1 bytes behind its datagrams" in refuses(tmp_path, RUN, whole + b"x")


def test_a_frame_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert "a message of 268435457 bytes" in refuses(tmp_path, RUN, b"", 2**28 + 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "HELLO is no JSON"),
        (b"\xff", "HELLO is no JSON"),
        (b"[]", "HELLO is no JSON object"),
        (b"{}", 'HELLO: "contract" is null'),
        (b'{"contract": "1"}', 'HELLO: "contract" is "1", which is not valid'),
    ],
)
def test_a_bad_hello_is_refused_in_words(tmp_path: Path, body: bytes, message: str) -> None:
    assert message in refuses(tmp_path, HELLO, body)


def environment(folder: Path, **variables: str) -> dict[str, str]:
    folders = {"WWW": str(folder / "www"), "DOWNLOADS": str(folder / "downloads"), "CERTS": str(CERTS)}
    mark = {children.MARK: os.environ[children.MARK]}
    return {"PATH": os.environ["PATH"], "TESTCASE": "transfer", **mark, **folders, **variables}


def fetch(folder: Path, *urls: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = environment(folder, ROLE="client", REQUESTS=" ".join(urls), **variables)
    return end(env)


def end(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The endpoint in socket mode, when it has ended."""
    return subprocess.run(AIOQUIC[:-1], env=env, timeout=60, text=True, capture_output=True, check=False)


@pytest.fixture
def port() -> Iterator[int]:
    with loopback.free_port() as port:
        yield port


@pytest.mark.real_time
def test_sockets(tmp_path: Path, port: int) -> None:
    lab, address = Lab(tmp_path), f"127.0.0.1:{port}"
    logs = {"QLOGDIR": str(tmp_path / "qlog"), "SSLKEYLOGFILE": str(tmp_path / "keys")}
    env = environment(tmp_path, ROLE="server", BENTPIPE_LISTEN=address, BENTPIPE_OPTIONS="cc=cubic iw=20")
    server = subprocess.Popen(AIOQUIC[:-1], env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        fetched = fetch(tmp_path, f"https://{address}/file", BENTPIPE_OPTIONS="window=2000000", **logs)
        assert (fetched.returncode, fetched.stderr) == (0, "")
        assert lab.stored() == lab.served()
        assert [json.loads(file.read_text())["traces"] for file in (tmp_path / "qlog").glob("*.qlog")]
        assert "CLIENT_TRAFFIC_SECRET_0" in (tmp_path / "keys").read_text()
        absent = fetch(tmp_path, f"https://{address}/absent")
        assert absent.returncode == 1
        assert "/absent: reset by peer" in absent.stderr
        server.send_signal(signal.SIGTERM)
        assert server.wait(children.PATIENCE_S) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.kill()
        server.communicate()


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize("variables", [{"TESTCASE": "no-such-test"}, {"BENTPIPE_OPTIONS": "cc=bbr"}], ids=str)
def test_sockets_unsupported(tmp_path: Path, role: str, variables: dict[str, str]) -> None:
    env = environment(Lab(tmp_path).folder, ROLE=role) | variables
    assert end(env).returncode == 127


def test_a_busy_address_is_a_failure_that_names_it(tmp_path: Path) -> None:
    Lab(tmp_path)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        env = environment(tmp_path, ROLE="server", BENTPIPE_LISTEN=address)
        failed = end(env)
    assert failed.returncode == 1
    assert address in failed.stderr
