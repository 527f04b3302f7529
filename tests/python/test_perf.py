"""`bentpipe perf`: client and server over loopback, as users start them, however fast the machine is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bentpipe import paths
from bentpipe.stacks.loopback import free_port

pytestmark = pytest.mark.real_time

PERF = [sys.executable, "-m", "bentpipe", "perf"]
LONG_S = 120  # a test that takes longer hangs


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PERF, *arguments], capture_output=True, text=True, timeout=LONG_S, check=False)


@contextlib.contextmanager
def server(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server on a free port of 127.0.0.1, and the port. It is killed at the end if it still runs."""
    command = [*PERF, "server", "127.0.0.1:0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        source = process.stderr if "--json" in arguments else process.stdout
        assert source is not None
        line = source.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        assert found, line + (process.stderr.read() if process.stderr else "")
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


def client(port: str, *arguments: str) -> dict[str, Any]:
    """The document of a test that must succeed."""
    done = run("client", "127.0.0.1", "--port", port, "--json", *arguments)
    assert done.returncode == 0, done.stderr + done.stdout
    document = json.loads(done.stdout)
    assert document["error"] is None
    return dict(document)


def check_intervals(document: dict[str, Any]) -> None:
    """They follow each other, and together they are the whole."""
    rows = document["intervals"]
    assert sum(row["received_bytes"] or 0 for row in rows) == document["end"]["received_bytes"]
    step = document["start"]["test"]["interval_s"]
    assert [row["start_s"] for row in rows] == pytest.approx([i * step for i in range(len(rows))])
    for row in rows:
        if row["received_bytes"] is not None:
            seconds = row["end_s"] - row["start_s"]
            assert row["goodput_bps"] == pytest.approx(8 * row["received_bytes"] / seconds)


@pytest.mark.parametrize("reverse", [False, True])
def test_bytes_arrive_exactly(reverse: bool) -> None:
    with server() as (_, port):
        document = client(port, "--bytes", "3000001", "--streams", "3", *["--reverse"] * reverse)
    start, end = document["start"], document["end"]
    assert end["received_bytes"] == 3_000_001
    assert start["test"]["direction"] == ("download" if reverse else "upload")
    assert start["test"]["streams"] == 3
    assert start["handshake_s"] > 0
    assert start["ttfb_s"] >= start["handshake_s"] * 0.99
    assert start["certificate"] == "not_verified"
    assert start["zero_rtt"] == "not_tried"
    assert start["session_resumed"] is False
    assert end["sent_packets"] * end["mtu_bytes"] >= 3_000_001
    assert end["lost_packets"] >= 0
    assert end["cwnd_bytes"] > 0
    assert end["rtt_ms"] > 0
    assert end["cpu_client_s"] > 0
    assert end["cpu_server_s"] > 0
    assert end["goodput_bps"] == pytest.approx(8 * 3_000_001 / end["seconds"])
    assert document["previous"] is None
    check_intervals(document)


def test_a_time_is_kept() -> None:
    with server() as (_, port):
        document = client(port, "--time", "0.5", "--interval", "0.1")
    assert document["end"]["received_bytes"] > 0
    assert document["end"]["interrupted"] is False
    sent = [row for row in document["intervals"] if row["cwnd_bytes"] is not None]
    assert len(sent) == 5  # the sender's; the receiver may need a moment more
    check_intervals(document)


def test_both_sides_tell_the_same() -> None:
    with server("--json", "--once") as (process, port):
        document = client(port, "--bytes", "1MiB", "--cc", "newreno", "--iw", "20")
        out, _ = process.communicate(timeout=LONG_S)
        assert process.returncode == 0
    (line,) = out.splitlines()
    other = json.loads(line)
    assert other["start"]["role"] == "server"
    assert other["start"]["test"] == document["start"]["test"]
    assert other["start"]["test"]["options"] == {"cc": "newreno", "iw": "20"}
    assert other["end"] == document["end"]


@pytest.mark.parametrize("reverse", [False, True])
def test_zero_rtt(reverse: bool) -> None:
    with server() as (_, port):
        document = client(port, "--bytes", "100kB", "--zero-rtt", *["--reverse"] * reverse)
    assert document["start"]["zero_rtt"] == "accepted"
    assert document["start"]["session_resumed"] is True
    assert document["end"]["received_bytes"] == 100_000


@pytest.mark.parametrize("reverse", [False, True])
def test_resume_is_two_tests(reverse: bool) -> None:
    """Loopback carries too little in a round trip to be worth remembering; the session is remembered."""
    arguments = ["--bytes", "4MB", "--ss", "standard", "--resume", *["--reverse"] * reverse]
    with server() as (_, port):
        document = client(port, *arguments)
    first = document["previous"]
    assert first["start"]["session_resumed"] is False
    assert document["start"]["session_resumed"] is True
    assert document["start"]["test"]["options"]["resume"] == "on"
    assert first["end"]["received_bytes"] == document["end"]["received_bytes"] == 4_000_000


@pytest.mark.parametrize("reverse", [False, True])
def test_careful_resume_reports_how_it_ended(reverse: bool) -> None:
    """Whoever sends is told what it knows of the path, and says what became of it."""
    arguments = ["--bytes", "4MB", "--ss", "standard", *["--reverse"] * reverse]
    with server() as (_, port):
        document = client(port, *arguments, "-o", "resume=on", "-o", "saved=200000@1ms")
        other = client(port, *arguments)
    assert document["end"]["congestion_control"]["resume_ended_as"]
    assert "resume_ended_as" not in other["end"]["congestion_control"]


def test_several_clients_at_once() -> None:
    with server() as (_, port):
        command = [*PERF, "client", "127.0.0.1", "--port", port, "--json", "--bytes"]
        sizes = ["1000000", "2000000", "3000000"]
        clients = [subprocess.Popen([*command, size], stdout=subprocess.PIPE) for size in sizes]
        for process, size in zip(clients, sizes, strict=True):
            out, _ = process.communicate(timeout=LONG_S)
            assert json.loads(out)["end"]["received_bytes"] == int(size)


def test_larger_datagrams() -> None:
    with server() as (_, port):
        document = client(port, "--bytes", "1MB", "--mtu", "9000")
    assert document["end"]["mtu_bytes"] == 9000
    assert document["end"]["received_bytes"] == 1_000_000


def test_logs(tmp_path: Path) -> None:
    folder, keys = tmp_path / "qlog", tmp_path / "keys"
    with server("--qlog", str(tmp_path / "server")) as (process, port):
        client(port, "--bytes", "10kB", "--qlog", str(folder), "--keylog", str(keys))
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=LONG_S) == 0
    assert "CLIENT_TRAFFIC_SECRET_0" in keys.read_text()
    for file in (folder / "client.sqlog", tmp_path / "server" / "server.sqlog"):
        assert file.stat().st_size > 1000
        json.loads(file.read_text().split("\x1e")[1])


def test_certificates() -> None:
    certs = paths.certs()
    with server("--cert", str(certs / "cert.pem"), "--key", str(certs / "priv.key")) as (_, port):
        arguments = ["--bytes", "1kB", "--ca", str(certs / "ca.pem"), "--server-name"]
        assert client(port, *arguments, "server")["start"]["certificate"] == "verified"
        wrong = run("client", "127.0.0.1", "--port", port, *arguments, "elsewhere")
    assert wrong.returncode == 1
    assert "certificate" in wrong.stderr


def test_options_that_the_server_cannot_keep_are_errors() -> None:
    for arguments, code, words in [
        (("--cc", "vegas"), 2, "newreno, cubic or bbr3"),
        (("--mtu", "100"), 2, "1200"),
        (("--option", "colour=red"), 2, "colour"),
        (("--frobnicate",), 2, "unexpected argument '--frobnicate'"),
        (("--time", "1", "--bytes", "1"), 2, "--time <SECONDS>' cannot be used with"),
        (("--streams", "0"), 2, "streams"),
        (("--interval", "0"), 2, "interval"),
        (("--bytes", "3 apples"), 2, "size"),
    ]:
        done = run("client", "127.0.0.1", *arguments)
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith("error: ")
        assert words in done.stderr
        assert "hint: " in done.stderr
        assert done.stdout == ""


def test_nobody_listens() -> None:
    """Long before the time limit: the kernel says so."""
    with free_port() as port:
        done = run("client", "127.0.0.1", "--port", str(port), "--connect-timeout", "100")
    assert done.returncode == 1
    assert "nobody listens" in done.stderr
    assert "hint: start `bentpipe perf server`" in done.stderr


def test_nobody_answers() -> None:
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as deaf:
        deaf.bind(("127.0.0.1", 0))
        port = str(deaf.getsockname()[1])
        done = run("client", "127.0.0.1", "--port", port, "--connect-timeout", "0.5")
    assert done.returncode == 1
    assert "no answer to the handshake" in done.stderr


def test_the_port_is_in_use() -> None:
    with server() as (_, port):
        done = run("server", f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert f"error: UDP port {port} is in use" in done.stderr
    assert "hint: " in done.stderr


@pytest.mark.parametrize("reverse", [False, True])
def test_an_interrupted_client_ends_in_order(reverse: bool) -> None:
    with server("--once") as (serving, port):
        command = [*PERF, "client", "127.0.0.1", "--port", port, "--interval", "0.05", "--time", "600"]
        process = subprocess.Popen([*command, *["--reverse"] * reverse], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert any(re.match(r" +0\.\d\d-", line) for line in process.stdout)  # it is under way
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LONG_S)
        assert process.returncode == 130
        assert "goodput " in out
        said, _ = serving.communicate(timeout=LONG_S)
        assert serving.returncode == 0
        assert "[1] goodput " in said


def test_an_interrupted_server_ends_in_order() -> None:
    with server() as (serving, port):
        command = [*PERF, "client", "127.0.0.1", "--port", port, "--interval", "0.05", "--time", "600"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert any(re.match(r" +0\.\d\d-", line) for line in process.stdout)
        serving.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LONG_S)
        assert process.returncode == 0
        assert "goodput " in out
        said, _ = serving.communicate(timeout=LONG_S)
        assert serving.returncode == 0
        assert "[1] goodput " in said


def test_lines_fit_into_a_small_terminal() -> None:
    with server() as (serving, port):
        done = run("client", "127.0.0.1", "--port", port, "--bytes", "20MB", "--interval", "0.05")
        serving.send_signal(signal.SIGINT)
        said, _ = serving.communicate(timeout=LONG_S)
    text = done.stdout + said + run("--help").stdout
    assert max(map(len, text.splitlines())) <= 80, text


def test_help_is_the_same_without_the_program(tmp_path: Path) -> None:
    environment = {**os.environ, "BENTPIPE_BIN": str(tmp_path)}
    done = subprocess.run([*PERF, "--help"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == run("--help").stdout
    own = subprocess.run(
        [paths.program("bentpipe-perf"), "--help"], capture_output=True, text=True, check=True
    )
    assert own.stdout == done.stdout
    away = subprocess.run([*PERF, "server"], env=environment, capture_output=True, text=True, check=False)
    assert away.returncode == 1
    assert "bentpipe-perf is not built" in away.stderr
