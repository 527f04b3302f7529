"""`bentpipe masque`: a client and a proxy as operators run them, over loopback, between the two sides of
`bentpipe perf`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import wait_for
from running_proxy import RunningProxy

from bentpipe import paths

pytestmark = pytest.mark.real_time

BENTPIPE = [sys.executable, "-m", "bentpipe"]
MASQUE = [*BENTPIPE, "masque"]
PERF = [*BENTPIPE, "perf"]
CERTS = paths.socket_certs()
IDENTITY = ["--cert", str(CERTS / "cert.pem"), "--key", str(CERTS / "priv.key")]
LOOPBACK = ["--allow", "127.0.0.0/8:*"]
TOKEN = "a-token-of-the-first-customer"
LONG_S = 120  # a test that takes longer hangs


@contextlib.contextmanager
def running(role: str, *arguments: str) -> Iterator[RunningProxy]:
    """A proxy or a client on a free port. It is killed at the end if it still runs."""
    command = [*MASQUE, role, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-format", "json"]
    process = subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True)
    try:
        yield RunningProxy(process, "bentpipe_masque_")
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def proxy(*arguments: str) -> Iterator[RunningProxy]:
    with running("proxy", *IDENTITY, *arguments) as it:
        yield it


@contextlib.contextmanager
def client(of: RunningProxy, target: str, *arguments: str) -> Iterator[RunningProxy]:
    """A client of the proxy. The laboratory's certificate is for other names than its address."""
    trust = ["--ca", str(CERTS / "ca.pem")]
    template = f"https://server:{of.port}/.well-known/masque/udp/{{target_host}}/{{target_port}}/"
    where = ["--proxy", f"127.0.0.1:{of.port}", "--template", template, "--target", target]
    with running("client", *where, *trust, *arguments) as it:
        yield it


@contextlib.contextmanager
def echo() -> Iterator[str]:
    """A server that sends every datagram back; its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    server.sendto(*server.recvfrom(2000))

        threading.Thread(target=serve, daemon=True).start()
        yield str(server.getsockname()[1])


def exchange(it: RunningProxy, payload: bytes) -> bool:
    """Whether what is sent to a client's port comes back from the target; asked again for what is lost."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.settimeout(0.2)
        here.connect(("127.0.0.1", int(it.port)))
        for _ in range(50):
            with contextlib.suppress(TimeoutError, ConnectionRefusedError):
                here.send(payload)
                if here.recv(2000) == payload:
                    return True
    return False


def send(it: RunningProxy, payload: bytes = b"hello") -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.sendto(payload, ("127.0.0.1", int(it.port)))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MASQUE, *arguments], capture_output=True, text=True, timeout=LONG_S, check=False)


@pytest.mark.parametrize("role", ["proxy", "client"])
def test_help_is_the_same_without_the_program(role: str, tmp_path: Path) -> None:
    environment = {**os.environ, "BENTPIPE_BIN": str(tmp_path)}
    command = [*MASQUE, role, "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    program = [str(paths.program("bentpipe-masque")), role, "--help"]
    own = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout == own.stdout == run(role).stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert f"bentpipe masque {role}" in done.stdout


def test_the_version_names_the_libraries() -> None:
    for role in ("proxy", "client"):
        said = run(role, "--version").stdout
        assert re.fullmatch(r"bentpipe-masque \d\S* \(noq-proto \d\S*, h3 \d\S*\)\n", said)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["proxy", "--check"], ["who may come", "--tokens"]),
        (["proxy", "--anybody", "--allow", "everything", "--check"], ["everything", "HOSTS:PORTS"]),
        (["proxy", "--tokens", "nowhere.txt"], ["clients.tokens", "nowhere.txt", "openssl rand"]),
        (["proxy", "--anybody", "--tunnel", "cc=vegas"], ["tunnel", "vegas"]),
        (["proxy", "--anybody", "--cert", "chain.pem"], ["--cert and --key belong together"]),
        (["proxy", "--anybody", "--listn", "127.0.0.1:0"], ["--listn", "did you mean --listen"]),
        (["client", "--proxy", "127.0.0.1:9", "--no-verify"], ["target: there is none", "--target"]),
        (["client", "--target", "127.0.0.1:9", "--no-verify"], ["proxy: there is none", "--proxy"]),
        (["client", "--target", "127.0.0.1:9", "--proxy", "127.0.0.1:9"], ["proxy.ca: missing", "--ca"]),
        (["neither"], ["neither"]),
    ],
)
def test_mistakes_are_named_with_a_hint(arguments: list[str], words: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2, done
    for word in words:
        assert word in done.stderr
    assert "hint" in done.stderr or arguments == ["neither"]


@pytest.mark.parametrize(("role", "name"), [("proxy", "masque"), ("client", "masque-client")])
def test_the_example_is_understood(role: str, name: str) -> None:
    done = run(role, "--config", str(paths.root() / "examples" / f"{name}.toml"), "--check")
    assert done.returncode == 0, done.stderr
    assert "[tunnel]" in done.stdout


def test_quic_passes_it_is_counted_and_the_proxy_drains(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"# the first customer\n{TOKEN}\n")
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    with (
        perf_server() as target,
        proxy("--tokens", str(tokens), *LOOPBACK) as it,
        client(it, target, "--token", str(token)) as near,
    ):
        document = perf(near.port, "--bytes", "5MB", "--reverse")
        assert document["end"]["received_bytes"] == 5_000_000
        counted = near.metrics()
        assert (counted["requests_total"], counted["refused_requests_total"]) == (1, 0)
        assert counted["received_bytes_total"] > 5_000_000
        there = it.metrics()
        assert (there["connections"], there["requests"], there["requests_total"]) == (1, 1, 1)
        assert there["sent_datagrams_total"] >= counted["received_datagrams_total"] > 3000
        opened = it.wait_for("opened")
        assert opened["target"] == opened["address"] == target
        assert it.ask("/healthz") == (200, "ok\n")
        it.signal(signal.SIGTERM)
        wait_for("draining", lambda: it.ask("/healthz")[0] == 503)
        assert it.process.poll() is None, "a request is under way"
        near.signal(signal.SIGTERM)
        assert near.end() == 0
        assert it.end() == 0
        closed = it.wait_for("closed")
        assert closed["bytes_to_client"] > 5_000_000


def test_forwarded_packets_come_to_the_worker_of_their_connection() -> None:
    forward = ["--tunnel", "forward=scramble"]
    with (
        perf_server() as target,
        proxy("--anybody", *LOOPBACK, "--workers", "3", *forward) as it,
        contextlib.ExitStack() as stack,
    ):
        clients = [stack.enter_context(client(it, target, *forward)) for _ in range(4)]
        for near in clients:
            # Once a packet is forwarded, all that follow are: without them nothing would complete.
            assert perf(near.port, "--bytes", "10MB")["end"]["received_bytes"] == 10_000_000
            assert near.metrics()["forwarded_packets_total"] > 0
        assert it.metrics()["received_forwarded_packets_total"] > 0


@contextlib.contextmanager
def perf_server() -> Iterator[str]:
    """Its address."""
    command = [*PERF, "server", "127.0.0.1:0", *IDENTITY]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"127\.0\.0\.1:\d+", server.stdout.readline())
        assert found
        threading.Thread(target=server.stdout.read, daemon=True).start()
        yield found[0]
    finally:
        server.kill()
        server.wait()


def perf(port: str, *arguments: str) -> dict[str, Any]:
    command = [*PERF, "client", "127.0.0.1", "--port", port, "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return dict(json.loads(done.stdout))


def test_loopback_and_private_targets_are_refused_unless_they_are_allowed() -> None:
    with echo() as port, proxy("--anybody") as it:
        for target in (f"127.0.0.1:{port}", f"localhost:{port}", "10.0.0.1:443", f"[::1]:{port}"):
            with client(it, target) as near:
                send(near)
                said = near.wait_for("tunnel-failed")
                assert "403" in said["why"]
                refused = it.wait_for("request-refused", target=target)
                assert (refused["status"], refused["why"]) == (403, "targets.allow")
        assert it.metrics()["not_allowed_requests_total"] == 4


def test_a_name_is_looked_up_by_the_proxy() -> None:
    with echo() as port, proxy("--anybody", "--allow", "localhost:*", "--allow", "*.invalid:*") as it:
        with client(it, f"localhost:{port}") as near:
            assert exchange(near, b"by name")
        with client(it, "nowhere.invalid:443") as near:
            send(near)
            assert "502" in near.wait_for("tunnel-failed")["why"]
        assert it.wait_for("request-refused")["why"] == "no address"


def test_who_shows_no_token_is_refused_and_tokens_can_be_changed(tmp_path: Path) -> None:
    tokens, token = tmp_path / "tokens", tmp_path / "token"
    tokens.write_text("another-token-altogether\n")
    token.write_text(TOKEN)
    with echo() as port, proxy("--tokens", str(tokens), *LOOPBACK) as it:
        for arguments in ([], ["--token", str(token)]):
            with client(it, f"127.0.0.1:{port}", *arguments) as near:
                send(near)
                assert "407" in near.wait_for("tunnel-failed")["why"]
        tokens.write_text("")
        it.signal(signal.SIGHUP)
        assert "no token" in it.wait_for("reload-failed")["why"]
        tokens.write_text(TOKEN)
        it.signal(signal.SIGHUP)
        it.wait_for("reloaded")
        with client(it, f"127.0.0.1:{port}", "--token", str(token)) as near:
            assert exchange(near, b"with a token")


def certificate(folder: Path) -> list[str]:
    """The options of a client with a certificate of an authority of its own, which is `ca.pem` there."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    (folder / "names").write_text("subjectAltName=DNS:customer\nextendedKeyUsage=clientAuth\n")
    for command in (
        ["req", "-x509", *key, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"],
        ["req", *key, "-subj", "/CN=customer", "-keyout", "own.key", "-out", "own.csr"],
        ["x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
         "-days", "2", "-extfile", "names", "-out", "own.pem"],
    ):  # fmt: skip
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)
    return ["--cert", str(folder / "own.pem"), "--key", str(folder / "own.key")]


def test_only_clients_with_a_certificate_of_the_authority_may_come(tmp_path: Path) -> None:
    own = certificate(tmp_path)
    with echo() as port, proxy("--client-ca", str(tmp_path / "ca.pem"), *LOOPBACK) as it:
        with client(it, f"127.0.0.1:{port}") as near:
            send(near)
            assert "certificate" in near.wait_for("tunnel-failed")["why"].casefold()
        with client(it, f"127.0.0.1:{port}", *own) as near:
            assert exchange(near, b"with a certificate")


def test_limits_bound_connections_and_requests() -> None:
    limits = ["--set", "limits.connections=1", "--set", "limits.requests=1"]
    with (
        echo() as port,
        proxy("--anybody", *LOOPBACK, *limits) as it,
        client(it, f"127.0.0.1:{port}") as first,
    ):
        assert exchange(first, b"first")
        with client(it, f"127.0.0.1:{port}") as second:
            send(second)
            second.wait_for("tunnel-failed")
        assert it.wait_for("refused")["why"] == "limits.connections"
        # A further address behind the client waits for the first's request to end.
        send(first, b"of another address")
        counted = it.metrics()
        assert (counted["connections"], counted["requests"]) == (1, 1)


def test_a_request_without_datagrams_ends() -> None:
    with (
        echo() as port,
        proxy("--anybody", *LOOPBACK, "--set", "times.idle=1 s") as it,
        client(it, f"127.0.0.1:{port}") as near,
    ):
        assert exchange(near, b"first")
        it.wait_for("closed")
        wait_for("the end of the request", lambda: it.metrics()["requests"] == 0)
        assert exchange(near, b"second")
        assert it.metrics()["requests_total"] == 2


def test_a_second_signal_ends_at_once_and_a_client_comes_back() -> None:
    with echo() as port, proxy("--anybody", *LOOPBACK) as it, client(it, f"127.0.0.1:{port}") as near:
        assert exchange(near, b"first")
        it.signal(signal.SIGTERM)
        it.wait_for("draining")
        it.signal(signal.SIGTERM)
        assert it.end() == 0
        near.wait_for("disconnected")
        assert near.process.poll() is None


def test_several_workers_serve_the_connections_of_all() -> None:
    with echo() as port, proxy("--anybody", *LOOPBACK, "--workers", "3") as it:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(client(it, f"127.0.0.1:{port}")) for _ in range(6)]
            assert all(exchange(near, b"hello") for near in clients)
            assert it.metrics()["connections"] == 6
        it.signal(signal.SIGTERM)
        assert it.end() == 0
