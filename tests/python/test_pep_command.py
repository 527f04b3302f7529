"""`bentpipe pep`: the proxy as operators run it, over loopback, between the two sides of `bentpipe perf`."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import wait_for
from running_proxy import RunningProxy

from bentpipe import paths

pytestmark = pytest.mark.real_time

BENTPIPE = [sys.executable, "-m", "bentpipe"]
PEP = [*BENTPIPE, "pep"]
PERF = [*BENTPIPE, "perf"]
CERTS = paths.socket_certs()
EXAMPLE = paths.root() / "examples" / "pep.toml"
LONG_S = 120  # a test that takes longer hangs


@contextlib.contextmanager
def proxy(*arguments: str, listen: str = "127.0.0.1:0") -> Iterator[RunningProxy]:
    """A proxy on a free port. It is killed at the end if it still runs."""
    command = [*PEP, *arguments, "--listen", listen, "--metrics", "127.0.0.1:0", "--log-format", "json"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield RunningProxy(process, "bentpipe_pep_")
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def server(*arguments: str) -> Iterator[str]:
    """A perf server; its port."""
    identity = ["--cert", str(CERTS / "cert.pem"), "--key", str(CERTS / "priv.key")]
    command = [*PERF, "server", "127.0.0.1:0", *identity, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert found
        # It says something of every test: a pipe that nobody reads would hold it up, after hundreds.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield found[1]
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def through(port: str, *arguments: str) -> Iterator[RunningProxy]:
    """A proxy before the server at the port."""
    trust = ["--ca", str(CERTS / "ca.pem")]
    with proxy("--next-hop", f"127.0.0.1:{port}", *trust, *arguments) as it:
        yield it


def start_client(port: str, *arguments: str) -> subprocess.Popen[str]:
    command = [*PERF, "client", "127.0.0.1", "--port", port, "--server-name", "server", "--json", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def client(port: str, *arguments: str) -> dict[str, Any]:
    """The document of a test that must succeed."""
    process = start_client(port, *arguments)
    out, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err + out
    document = json.loads(out)
    assert document["error"] is None
    return dict(document)


def refused(port: str, *arguments: str) -> str:
    """What a client says that must fail."""
    process = start_client(port, "--bytes", "1kB", *arguments)
    out, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 1, err + out
    return err + out


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PEP, *arguments], capture_output=True, text=True, timeout=LONG_S, check=False)


def test_help_is_the_same_without_the_program(tmp_path: Path) -> None:
    environment = {**os.environ, "BENTPIPE_BIN": str(tmp_path)}
    done = subprocess.run([*PEP, "--help"], env=environment, capture_output=True, text=True, check=True)
    own = subprocess.run(
        [paths.program("bentpipe-pep"), "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout == own.stdout == run("-h").stdout == run().stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    away = subprocess.run([*PEP, "--check"], env=environment, capture_output=True, text=True, check=False)
    assert away.returncode == 1
    assert "bentpipe-pep is not built" in away.stderr


def test_the_version_names_the_library() -> None:
    assert re.fullmatch(r"bentpipe-pep \d\S* \(noq-proto \d\S*\)\n", run("--version").stdout)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--check",), "next-hop: there is none"),
        (("--next-hop", "127.0.0.1:1"), "next-hop.ca: missing"),
        (("--next-hop", "gateway", "--no-verify"), "HOST:PORT"),
        (("--next-hop", "127.0.0.1:1", "--ca", "/nowhere"), "next-hop.ca: /nowhere"),
        (("-n", "127.0.0.1:1", "--no-verify", "--cert", "x"), "belong together"),
        (("-n", "127.0.0.1:1", "--no-verify", "--cert", "x", "--key", "y"), "certificate.chain: x"),
        (("-n", "127.0.0.1:1", "--no-verify", "--mode", "fast"), "unknown variant `fast`"),
        (("-n", "127.0.0.1:1", "--no-verify", "--set", "limits.streams=0"), "limits.streams = 0"),
        (("-n", "127.0.0.1:1", "--no-verify", "--server-side", "cc=vegas"), "newreno"),
        (("-n", "127.0.0.1:1", "--no-verify", "--client-side", "colour=red"), "client-side"),
        (("--config", "/nowhere.toml"), "/nowhere.toml"),
        (("--frobnicate",), "unknown option --frobnicate"),
        (("server",), "one word too many"),
        (("-n", "127.0.0.1:1", "--no-verify", "--listen", "203.0.113.77:1"), "203.0.113.77:1"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_starts(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert "hint: " in done.stderr
    assert done.stdout == ""


def test_check_prints_what_is_understood() -> None:
    done = run("--config", str(EXAMPLE), "--check", "--server-side", "iw=100", "--set", "times.idle=5 s")
    assert done.returncode == 0, done.stderr
    effective = tomllib.loads(done.stdout)
    assert effective["server-side"] == {"iw": "100"}
    assert effective["times"]["idle"] == "5 s"
    assert effective["limits"]["connections"] == 10_000
    assert Path(effective["next-hop"]["ca"]).read_bytes() == (CERTS / "ca.pem").read_bytes()


def test_the_example_starts_and_ends() -> None:
    with proxy("--config", str(EXAMPLE)) as it:
        assert it.ask("/healthz") == (200, "ok\n")
        assert it.ask("/")[0] == 404
        assert not [line for line in it.lines if line["level"] != "info"]
        it.signal(signal.SIGTERM)
        assert it.end() == 0
        assert [line["event"] for line in it.lines] == ["started", "draining", "ended"]


def test_without_a_certificate_one_is_made_and_that_is_said() -> None:
    with proxy("--next-hop", "127.0.0.1:1", "--no-verify") as it:
        warned = [line["event"] for line in it.lines if line["level"] == "warning"]
        assert warned == ["certificate", "next-hop"]
        it.signal(signal.SIGINT)
        assert it.end() == 0


@pytest.mark.parametrize("mode", ["parallel", "sequential", "warm"])
@pytest.mark.parametrize("reverse", [False, True])
def test_bytes_arrive_exactly(reverse: bool, mode: str) -> None:
    with server() as port, through(port, "--mode", mode) as it:
        for _ in range(2):
            document = client(it.port, "--bytes", "3000001", "--streams", "3", *["--reverse"] * reverse)
            assert document["end"]["received_bytes"] == 3_000_001
        closed = it.wait_for("closed")
        assert closed["by"] != "proxy"
        assert closed["code"] == 0
        opened = next(line for line in it.lines if line["event"] == "opened")
        assert opened["name"] == "server"
        assert opened["next_hop"] == f"127.0.0.1:{port}"
        counted = it.metrics()
        assert counted["connections_total"] == 2
        carried = counted["bytes_to_clients_total" if reverse else "bytes_to_servers_total"]
        assert carried >= 2 * 3_000_001


def test_two_in_a_row() -> None:
    identity = ["--cert", str(CERTS / "cert.pem"), "--key", str(CERTS / "priv.key")]
    with (
        server() as port,
        through(port, *identity, "--server-side", "iw=100") as second,
        through(second.port, "--client-side", "cc=newreno") as first,
    ):
        document = client(first.port, "--bytes", "5MB", "--streams", "2")
        assert document["end"]["received_bytes"] == 5_000_000
        client(first.port, "--bytes", "5MB", "--reverse")


def test_clients_of_every_worker_are_served_at_once() -> None:
    with server() as port, through(port, "--workers", "3") as it:
        for _ in range(3):
            running = [start_client(it.port, "--bytes", "1MB") for _ in range(8)]
            for process in running:
                out, _ = process.communicate(timeout=LONG_S)
                assert json.loads(out)["end"]["received_bytes"] == 1_000_000
        counted = it.metrics()
        assert counted["workers"] == 3
        assert counted["connections_total"] == 24
        assert counted["steered_datagrams_total"] == 0  # the kernel has chosen right
        keys = {line["connection"].partition("-")[0] for line in it.lines if line["event"] == "opened"}
        it.signal(signal.SIGTERM)
        it.end()
        keys |= {line["connection"].partition("-")[0] for line in it.lines if line["event"] == "opened"}
        # The kernel draws a worker for each by its address: all 24 have the same one once in 3^23 runs.
        assert len(keys) > 1


def under_way(it: RunningProxy, port: str, *arguments: str) -> subprocess.Popen[str]:
    """A transfer of which some has passed the proxy."""
    process = start_client(port, *arguments)
    while it.metrics()["bytes_to_servers_total"] < 1_000_000:
        assert process.poll() is None
    return process


def test_sigterm_lets_a_transfer_complete_and_takes_no_other() -> None:
    with server() as port, through(port, "--set", "times.drain=600 s") as it:
        process = under_way(it, it.port, "--time", "600")
        it.signal(signal.SIGTERM)
        it.wait_for("draining")
        assert it.ask("/healthz") == (503, "draining\n")
        refused(it.port)
        assert it.wait_for("refused")["why"] == "shutting down"
        before = it.metrics()["bytes_to_servers_total"]
        wait_for("more of the transfer", lambda: it.metrics()["bytes_to_servers_total"] > before)
        process.send_signal(signal.SIGINT)  # now it may end, in order
        out, err = process.communicate(timeout=LONG_S)
        assert process.returncode == 130, err + out
        document = json.loads(out)
        assert document["error"] is None
        assert document["end"]["received_bytes"] > 0
        assert it.end() == 0
        assert it.lines[-1]["event"] == "ended"


def test_what_goes_on_for_too_long_is_closed_when_draining() -> None:
    with server() as port, through(port, "--set", "times.drain=0.2 s") as it:
        process = under_way(it, it.port, "--time", "600")
        it.signal(signal.SIGTERM)
        assert it.end() == 0
        _, err = process.communicate(timeout=LONG_S)
        assert process.returncode == 1
        assert "shutting down" in err
        closed = next(line for line in it.lines if line["event"] == "closed")
        assert closed["by"] == "proxy"


def test_a_second_signal_ends_at_once() -> None:
    with server() as port, through(port) as it:
        process = under_way(it, it.port, "--time", "600", "--idle", "1")
        it.signal(signal.SIGTERM)
        it.wait_for("draining")
        it.signal(signal.SIGTERM)
        assert it.end() == 0
        process.kill()
        process.communicate()


def write(folder: Path, port: str, **more: str) -> Path:
    """A configuration file."""
    text = f"""
listen = ["127.0.0.1:0"]
[next-hop]
address = "127.0.0.1:{port}"
ca = "{CERTS / "ca.pem"}"
[log]
format = "json"
"""
    file = folder / "pep.toml"
    file.write_text(text + "".join(more.values()))
    return file


def test_sighup_changes_what_comes_and_drops_nothing(tmp_path: Path) -> None:
    """First a certificate that is made, then the laboratory's: a client that verifies sees the difference."""
    verify = ["--ca", str(CERTS / "ca.pem")]
    with server() as port, proxy("--config", str(write(tmp_path, port))) as it:
        assert "certificate" in refused(it.port, *verify)
        process = under_way(it, it.port, "--time", "600")
        identity = f'[[certificate]]\nchain = "{CERTS / "cert.pem"}"\nkey = "{CERTS / "priv.key"}"\n'
        write(tmp_path, port, identity=identity)
        it.signal(signal.SIGHUP)
        it.wait_for("reloaded")
        assert client(it.port, "--bytes", "10kB", *verify)["start"]["certificate"] == "verified"

        write(tmp_path, port, identity=identity, broken="[limits]\nstreams = 0\n")
        it.signal(signal.SIGHUP)
        assert "limits.streams = 0" in it.wait_for("reload-failed")["why"]
        client(it.port, "--bytes", "10kB", *verify)

        write(tmp_path, port, identity=identity, workers="[limits]\nconnections = 1\n")
        it.signal(signal.SIGHUP)
        while len([line for line in it.lines if line["event"] == "reloaded"]) < 2:
            it.lines.append(json.loads(next(iter(it.process.stderr or []))))
        refused(it.port, *verify)  # the one that is under way is the one that there may be
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LONG_S)
        assert process.returncode == 130, err + out  # ended by the client itself, in order
        assert json.loads(out)["error"] is None


def test_what_needs_a_restart_is_named(tmp_path: Path) -> None:
    file = write(tmp_path, "1", workers="")
    with proxy("--config", str(file), "--workers", "1") as it:
        file.write_text("workers = 2\n" + file.read_text())
        it.signal(signal.SIGHUP)
        assert "not_before_a_restart" not in it.wait_for("reloaded")  # the flag still says otherwise
    with proxy("--config", str(write(tmp_path, "1"))) as it:
        file.write_text("workers = 5\n" + file.read_text() + '[client-side]\nversion = "draft-29"\n')
        it.signal(signal.SIGHUP)
        assert it.wait_for("reloaded")["not_before_a_restart"] == ["workers", "client-side.version"]


def test_names_that_are_not_allowed_are_refused() -> None:
    with server() as port:
        trust = ["--ca", str(CERTS / "ca.pem")]
        with proxy("--allow", f"server=127.0.0.1:{port}", *trust) as it:
            client(it.port, "--bytes", "10kB")
            refused(it.port, "--server-name", "elsewhere")
            line = it.wait_for("refused")
            assert (line["why"], line["name"]) == ("server name", "elsewhere")


def test_limits_hold_over_all_workers() -> None:
    settings = ["--workers", "2", "--set", "limits.connections-per-client=1"]
    with server() as port, through(port, *settings) as it:
        process = under_way(it, it.port, "--time", "600")
        for _ in range(4):
            refused(it.port)
        assert it.wait_for("refused")["why"] == "limits.connections-per-client"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LONG_S)
        it.wait_for("closed")
        client(it.port, "--bytes", "10kB")


def test_garbage_disturbs_nobody() -> None:
    """Datagrams of no form, and beginnings of handshakes that go nowhere, while a transfer is under way."""
    draw = random.Random(7)
    with server() as port, through(port, "--workers", "2") as it:
        process = under_way(it, it.port, "--time", "1")
        with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
            for number in range(3000):
                head = draw.choice([b"", b"\x40", b"\xc0\x00\x00\x00\x01\x08", b"\xc3\x6b\x33\x43\xcf\x08"])
                body = draw.randbytes(draw.choice([0, 1, 20, 1200, 1400]))
                sender.sendto(head + body, ("127.0.0.1", int(it.port)))
                if number % 100 == 0:
                    assert it.ask("/healthz")[0] == 200
        out, err = process.communicate(timeout=LONG_S)
        assert process.returncode == 0, err + out
        client(it.port, "--bytes", "1MB")
        wait_for("the end of all connections", lambda: it.metrics()["connections"] == 0)


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_a_next_hop_that_does_not_answer(mode: str) -> None:
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as deaf:
        deaf.bind(("127.0.0.1", 0))
        port = str(deaf.getsockname()[1])
        with through(port, "--mode", mode, "--set", "times.handshake=0.3 s") as it:
            refused(it.port)
            closed = it.wait_for("closed")
            assert closed["by"] == "proxy"
            assert closed["why"]


def test_a_next_hop_with_the_wrong_certificate(tmp_path: Path) -> None:
    """The laboratory's other authority has signed nothing of what the server shows."""
    with server() as port:
        trust = ["--ca", str(paths.certs() / "ca.pem")]
        with proxy("--next-hop", f"127.0.0.1:{port}", *trust) as it:
            refused(it.port)
            closed = it.wait_for("closed")
            assert closed["by"] == "proxy"
            assert "certificate" in closed["why"]


def test_clients_without_a_certificate_stay_outside() -> None:
    with server() as port, through(port, "--client-ca", str(CERTS / "ca.pem")) as it:
        refused(it.port)
        assert it.metrics()["bytes_to_servers_total"] == 0


@pytest.mark.soak
def test_memory_stays_where_it_is() -> None:
    """Hundreds of short connections, one after the other: what one took, the next has."""
    with server() as port, through(port) as it:

        def some(count: int) -> None:
            for _ in range(count):
                client(it.port, "--bytes", "10kB")
            wait_for("the end of the last", lambda: it.metrics()["connections"] == 0)

        some(50)
        before = it.metrics()["resident_memory_bytes"]
        some(400)
        assert it.metrics()["resident_memory_bytes"] < before + 8 * 2**20
