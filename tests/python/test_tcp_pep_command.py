"""`bentpipe tcp-pep` as operators run it: over loopback, which takes no rights, and between hosts."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import wait_for
from running_proxy import PATIENCE_S, RunningProxy
from three_hosts import CLIENT, CLIENT6, SERVER, SERVER6, ThreeHosts

from bentpipe import paths

pytestmark = pytest.mark.real_time

TCP_PEP = [sys.executable, "-m", "bentpipe", "tcp-pep"]
PROGRAM = str(paths.program("bentpipe-tcp-pep"))
LOAD = [sys.executable, str(Path(__file__).with_name("tcp_load.py"))]
BETWEEN = ["--clients", "clients", "--servers", "servers"]


@contextlib.contextmanager
def proxy(*arguments: str, start: list[str] | None = None) -> Iterator[RunningProxy]:
    """A proxy with a page of metrics. It is killed at the end if it still runs."""
    command = [*(start or [PROGRAM]), *arguments, "--metrics", "127.0.0.1:0", "--log-format", "json"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield RunningProxy(process, "bentpipe_tcp_pep_")
    finally:
        process.kill()
        process.communicate()


class Load:
    """One side of connections."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> dict[str, Any]:
        """What it says at the end."""
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        return dict(json.loads(out.splitlines()[-1]))


@contextlib.contextmanager
def load(*words: str, start: list[str] | None = None) -> Iterator[Load]:
    side = Load([*(start or []), *LOAD, *words])
    try:
        yield side
    finally:
        side.process.kill()
        side.process.communicate()


@contextlib.contextmanager
def before_a_server(*arguments: str) -> Iterator[tuple[RunningProxy, Load]]:
    """A proxy over loopback, with one worker, before a server."""
    with load("server", "127.0.0.1", "0") as server:
        port = server.line().split()[1]
        words = ["--listen", "127.0.0.1:0", "--next-hop", f"127.0.0.1:{port}", "--workers", "1", *arguments]
        with proxy(*words) as it:
            yield it, server


def ask(it: RunningProxy, count: int, size: int) -> dict[str, Any]:
    """How the connections of a client by way of the proxy end."""
    with load("client", "127.0.0.1", it.port, str(count), str(size)) as client:
        return client.end()


@contextlib.contextmanager
def under_way(it: RunningProxy, count: int = 1) -> Iterator[Load]:
    with load("client", "127.0.0.1", it.port, str(count), "0") as client:
        assert client.line() == "under way"
        yield client


def connect(it: RunningProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(it.port)), PATIENCE_S)


def is_refused(it: RunningProxy) -> bool:
    try:
        connect(it).close()
    except ConnectionRefusedError:
        return True
    return False


# Over loopback


def test_it_carries_counts_and_drains() -> None:
    with before_a_server() as (it, server):
        assert ask(it, 20, 100_000) == {"done": 20}
        wait_for("the end of all", lambda: it.metrics()["connections"] == 0)
        counted = it.metrics()
        assert (counted["connections_total"], counted["established_total"]) == (20, 20)
        assert (counted["closed_total"], counted["reset_total"]) == (20, 0)
        assert (counted["bytes_to_clients_total"], counted["bytes_to_servers_total"]) == (2_000_000, 160)
        assert counted["buffers"] == 0
        assert it.ask("/healthz") == (200, "ok\n")
        with connect(it) as last:
            it.signal(signal.SIGTERM)
            it.wait_for("draining")
            assert it.ask("/healthz")[0] == 503
            wait_for("the end of listening", lambda: is_refused(it))
            last.sendall((1000).to_bytes(8))  # one that was there goes on
            last.shutdown(socket.SHUT_WR)
            assert len(last.makefile("rb").read()) == 1000
        assert it.end() == 0
        assert it.lines[-1]["event"] == "ended"
        # Whether it still listens was asked by connecting: what of that was taken asked nothing here.
        ends = server.end()["ends"]
        assert {how: many for how, many in ends.items() if how != "nothing asked"} == {"done": 21}


def test_what_is_behind_an_urgent_mark_is_carried_too() -> None:
    """A read stops at the mark, and no event comes for what is behind it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = f"127.0.0.1:{server.getsockname()[1]}"
        with proxy("--listen", "127.0.0.1:0", "--next-hop", there) as it, connect(it) as client:
            peer, _ = server.accept()
            peer.settimeout(PATIENCE_S)
            with peer, peer.makefile("rb") as came:
                client.sendall(b"first")
                assert came.read(5) == b"first"
                it.signal(signal.SIGSTOP)  # so that all is there at once
                state = Path(f"/proc/{it.process.pid}/stat")
                wait_for("the proxy to stop", lambda: state.read_text().rpartition(") ")[2][0] == "T")
                client.sendall(b"before")
                client.send(b"!", socket.MSG_OOB)
                client.sendall(b"behind")
                it.signal(signal.SIGCONT)
                assert came.read(12) == b"beforebehind"


def test_what_goes_on_for_too_long_is_reset_when_draining() -> None:
    with before_a_server("--set", "times.drain=0.2 s") as (it, server), under_way(it) as client:
        it.signal(signal.SIGTERM)
        assert it.end() == 0
        assert client.end() == {"ConnectionResetError": 1}
        assert server.end()["ends"] == {"ConnectionResetError": 1}


def test_a_second_signal_ends_at_once() -> None:
    with before_a_server() as (it, _), under_way(it) as client:
        it.signal(signal.SIGTERM)
        it.wait_for("draining")
        it.signal(signal.SIGTERM)
        assert it.end() == 0
        assert client.end() == {"ConnectionResetError": 1}


def test_sighup_changes_what_comes_and_drops_nothing(tmp_path: Path) -> None:
    file = tmp_path / "pep.toml"
    with load("server", "127.0.0.1", "0") as server:
        hop = f'listen = ["127.0.0.1:0"]\nnext-hop = "127.0.0.1:{server.line().split()[1]}"\n'
        file.write_text(hop)
        with proxy("--config", str(file), "--workers", "1") as it, connect(it):
            it.wait_for("established")
            file.write_text(f"{hop}[limits]\nconnections = 0\n")
            it.signal(signal.SIGHUP)
            assert "limits.connections = 0" in it.wait_for("reload-failed")["why"]
            file.write_text(f'{hop}[limits]\nconnections = 1\n[metrics]\nlisten = "127.0.0.1:1"\n')
            it.signal(signal.SIGHUP)
            assert "not_before_a_restart" not in it.wait_for("reloaded"), "the flag says otherwise"
            assert ask(it, 1, 10) == {"ConnectionResetError": 1}
            assert it.wait_for("refused")["why"] == "limits.connections"


def test_clients_beyond_a_limit_are_reset_and_others_are_not() -> None:
    with before_a_server("--set", "limits.connections-per-client=3") as (it, _):
        first = [connect(it) for _ in range(3)]
        wait_for("three", lambda: it.metrics()["connections"] == 3)
        assert ask(it, 2, 10) == {"ConnectionResetError": 2}
        assert it.metrics()["refused_total"] == 2
        for one in first:
            one.close()
        wait_for("room", lambda: it.metrics()["connections"] == 0)
        assert ask(it, 1, 10) == {"done": 1}


def test_memory_is_bounded_and_what_has_none_waits() -> None:
    """Two buffers for six clients that ask for endless data and take none: all but two wait, unread."""
    limits = ["--set", "limits.memory=16 KiB", "--set", "limits.buffer=8 KiB"]
    with before_a_server(*limits) as (it, _):
        stuck = [connect(it) for _ in range(6)]
        for one in stuck:
            one.sendall((0).to_bytes(8))

        def is_stuck() -> bool:
            """For good, when the kernel's buffers are full, too; until then they come and go."""
            now = it.metrics()
            assert now["buffers"] <= 2
            return now["held_bytes"] == 16_384 and now["buffers"] == 2 and now["starved_total"] > 0

        wait_for("two buffers that are full, and some that wait", is_stuck)
        with connect(it) as late:  # it is accepted, and waits as well
            late.sendall((10).to_bytes(8))
            wait_for("all", lambda: it.metrics()["connections"] == 7)
            for one in stuck:
                one.close()
            late.shutdown(socket.SHUT_WR)
            assert len(late.makefile("rb").read()) == 10
        wait_for("no bytes that wait", lambda: it.metrics()["buffers"] == 0)


def test_who_does_not_move_ends() -> None:
    with before_a_server("--set", "times.idle=0.2 s") as (it, server), connect(it) as silent:
        assert it.wait_for("closed")["why"] == "nothing moved for too long"
        with pytest.raises(ConnectionResetError):
            silent.recv(1)
        assert it.metrics()["timed_out_total"] == 1
        assert server.end()["ends"] == {"ConnectionResetError": 1}


def test_without_descriptors_connections_wait_in_the_kernel() -> None:
    """Its own files and a few pairs fit below the limit; who comes next waits, and it never falls over."""
    start = [sys.executable, "-c", _FEW_FILES, PROGRAM]
    with load("server", "127.0.0.1", "0") as server:
        port = server.line().split()[1]
        words = ["--listen", "127.0.0.1:0", "--next-hop", f"127.0.0.1:{port}", "--workers", "1"]
        with proxy(*words, start=start) as it:
            assert it.ask("/healthz")[0] == 200
            found = ask(it, 40, 1000)
            # One whose own socket took the last is told so; none hangs.
            assert set(found) <= {"done", "ConnectionResetError"} and found["done"] >= 1, found
            assert it.process.poll() is None
            assert ask(it, 1, 1000) == {"done": 1}
            assert it.metrics()["paused_total"] > 0


_FEW_FILES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_thousand_connections_at_once() -> None:
    more = ["--set", "limits.connections-per-client=2000"]
    with before_a_server(*more) as (it, server), under_way(it, 1000) as client:
        counted = it.metrics()
        assert counted["connections"] == 1000
        assert counted["resident_memory_bytes"] < 600 * 2**20
        it.process.kill()  # in the middle
        assert client.end() == {"ConnectionResetError": 1000}, "none looks complete"
        assert server.end()["ends"] == {"ConnectionResetError": 1000}


def test_a_rate_holds_each_connection_to_it() -> None:
    """3 MB at 24 Mbit/s take a second; a kernel sends ten segments unpaced, which are of 64 kB here."""
    with before_a_server("--client-side", "rate=24 Mbit/s") as (it, _), connect(it) as paced:
        paced.sendall((3_000_000).to_bytes(8))
        paced.shutdown(socket.SHUT_WR)
        before = time.monotonic()
        assert len(paced.makefile("rb").read()) == 3_000_000
        assert time.monotonic() - before > 0.5


@contextlib.contextmanager
def pool(terminal: str, *arguments: str) -> Iterator[tuple[RunningProxy, RunningProxy, Load]]:
    """Two proxies with a pool between them, before a server; the gateway takes it from `terminal`."""
    with load("server", "127.0.0.1", "0") as server:
        hop = f"127.0.0.1:{server.line().split()[1]}"
        one = ["--workers", "1"]
        with proxy("--pool-listen", "127.0.0.1:0", "--terminal", terminal, *one) as gateway:
            words = ["--listen", "127.0.0.1:0", "--next-hop", hop, *one, *arguments]
            with proxy(*words, "--gateway", f"127.0.0.1:{gateway.port}") as it:
                yield it, gateway, server


def test_a_pool_has_connections_ready() -> None:
    with pool("127.0.0.1") as (it, gateway, server):
        wait_for("the pool", lambda: it.metrics()["pool"] == 8)
        wait_for("the pool at the gateway", lambda: gateway.metrics()["arriving"] == 8)
        assert ask(it, 3, 1000) == {"done": 3}
        assert (it.metrics()["pool_hits_total"], it.metrics()["pool_misses_total"]) == (3, 0)
        wait_for("the pool again", lambda: it.metrics()["pool"] == 8)
        assert ask(it, 40, 1000) == {"done": 40}  # more than there are: others open their own
        assert gateway.metrics()["connections_total"] == 43
        assert server.end()["ends"] == {"done": 43}
        gateway.process.kill()
        wait_for("no pool", lambda: it.metrics()["pool"] == 0)
        assert ask(it, 1, 1000) == {"ConnectionResetError": 1}


def test_a_pool_is_for_its_terminals_alone() -> None:
    """One that the gateway's kernel has accepted counts as ready at the terminal until it is refused."""
    with pool("192.0.2.1", "--set", "pool.connections=1") as (it, gateway, server):
        wait_for("some that are refused", lambda: gateway.metrics()["refused_total"] > 1)
        assert ask(it, 3, 1000) == {"ConnectionResetError": 3}
        assert gateway.metrics()["connections_total"] == 0
        assert server.end()["ends"] == {}


@pytest.mark.parametrize("words", [b"GET / HTTP/1.1\r\n\r\n", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff"])
def test_a_terminal_that_says_nothing_sensible_is_reset(words: bytes) -> None:
    with proxy("--pool-listen", "127.0.0.1:0", "--terminal", "127.0.0.1") as gateway:
        with connect(gateway) as odd:
            odd.sendall(words)
            with pytest.raises(ConnectionResetError):
                odd.recv(1)
        assert gateway.metrics()["reset_total"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nowhere that clients come from"),
        (["--clients", "a", "--servers", "a", "--port", "1"], 'are both "a"'),
        (["--port", "http"], '--port "http" is no port'),
        (["--listen", "127.0.0.1:1", "--next-hop", "h"], "is no HOST:PORT"),
        (["--worker", "1"], "unknown option --worker"),
        (
            ["-l", "127.0.0.1:1", "-n", "h:1", "--client-side", "cc=vegan"],
            'client-side.cc = "vegan": this kernel has',
        ),
        (["--config", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_mistakes_are_named(words: list[str], message: str) -> None:
    done = subprocess.run([*TCP_PEP, "--check", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and message in done.stderr and "\nhint: " in done.stderr, done.stderr


# Between hosts


@pytest.fixture
def hosts() -> Iterator[ThreeHosts]:
    if any(shutil.which(one) is None for one in ("ip", "nsenter", "unshare")):
        pytest.skip("no ip, nsenter or unshare on the PATH")
    probe = ["unshare", "--user", "--map-root-user", "--net", "true"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this user cannot make namespaces")
    three = ThreeHosts()
    try:
        yield three
    finally:
        three.close()


@contextlib.contextmanager
def between(hosts: ThreeHosts, *arguments: str) -> Iterator[RunningProxy]:
    """A transparent proxy. Its page of metrics is on its own host: nobody here can ask for it."""
    with proxy(*BETWEEN, "--workers", "1", *arguments, start=hosts.on("proxy", PROGRAM)) as it:
        yield it


def rules(hosts: ThreeHosts) -> list[str]:
    text = hosts.run("proxy", "ip", "rule") + hosts.run("proxy", "ip", "-6", "rule")
    return [line for line in text.splitlines() if "lookup 80" in line]


@pytest.mark.parametrize(("client", "server"), [(CLIENT, SERVER), (CLIENT6, SERVER6)])
def test_transparent_the_ends_see_each_other(hosts: ThreeHosts, client: str, server: str) -> None:
    with load("server", server, "443", start=hosts.on("server")) as far:
        assert far.line() == "port 443"
        with between(hosts, "--port", "443", "--server-side", "iw=50") as it:
            assert len(rules(hosts)) == 4
            route = hosts.run("proxy", "ip", "-4", "route", "show", "198.51.100.0/24")
            assert "initcwnd 50" in route
            with load("client", server, "443", "5", "100000", start=hosts.on("client")) as near:
                assert near.end() == {"done": 5}
            opened = it.wait_for("opened")
            assert client in opened["client"] and server in opened["server"]
            it.signal(signal.SIGTERM)
            assert it.end() == 0
        assert far.end() == {"ends": {"done": 5}, "peers": [client]}
    assert not rules(hosts)
    assert "initcwnd" not in hosts.run("proxy", "ip", "-4", "route", "show", "198.51.100.0/24")


@pytest.mark.parametrize(("client", "server"), [(CLIENT, SERVER), (CLIENT6, SERVER6)])
def test_late_a_client_hears_what_its_server_says(hosts: ThreeHosts, client: str, server: str) -> None:
    """Early, a client is connected before it is known whether its server is there."""
    words = ["client", server, "443", "3", "100000"]
    with between(hosts, "--port", "443") as it, load(*words, start=hosts.on("client")) as near:
        assert near.end() == {"ConnectionResetError": 3}
        assert "refused" in it.wait_for("closed")["why"]
    with between(hosts, "--port", "443", "--accept", "late") as it:
        assert len(rules(hosts)) == 6
        with load(*words, start=hosts.on("client")) as near:
            assert near.end() == {"ConnectionRefusedError": 3}
        with load("server", server, "443", start=hosts.on("server")) as far:
            assert far.line() == "port 443"
            with load(*words, start=hosts.on("client")) as near:
                assert near.end() == {"done": 3}
            assert far.end() == {"ends": {"done": 3}, "peers": [client]}
        it.signal(signal.SIGTERM)
        assert it.end() == 0
    assert not rules(hosts)


def test_late_a_server_that_is_silent_leaves_its_client_unanswered(hosts: ThreeHosts) -> None:
    hosts.batch("server", f"route add blackhole {CLIENT}/32")
    settings = ["--port", "443", "--accept", "late", "--set", "limits.connections=1"]

    def connect_for(seconds: float) -> str:
        words = (sys.executable, "-c", _CONNECT, SERVER, "443", str(seconds))
        return subprocess.check_output(hosts.on("client", *words), text=True)

    with between(hosts, *settings) as it:
        assert connect_for(0.5) == "timed out\n"
        # Who asked has gone, and is counted until it is certain that nobody answers.
        assert connect_for(PATIENCE_S) == "refused\n"
        assert it.wait_for("refused")["why"] == "limits.connections"


_CONNECT = """
import socket, sys
address, port, patience = sys.argv[1:]
try:
    socket.create_connection((address, int(port)), float(patience))
    print("connected")
except TimeoutError:
    print("timed out")
except ConnectionRefusedError:
    print("refused")
"""


def test_rules_of_one_that_was_killed_are_taken_over_or_removed(hosts: ThreeHosts) -> None:
    with between(hosts, "--port", "443") as it:
        it.process.kill()
        it.process.wait()
    assert len(rules(hosts)) == 4
    with between(hosts, "--port", "443") as it:
        it.process.kill()
        it.process.wait()
    hosts.run("proxy", PROGRAM, *BETWEEN, "--port", "443", "--remove-rules")
    assert not rules(hosts)


@pytest.mark.skipif(os.geteuid() != 0, reason="a user without privileges has none to give up")
def test_without_rights_it_says_what_is_missing() -> None:
    plain = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups"]
    words = [*plain, PROGRAM, "--clients", "lo", "--servers", "eth0", "--port", "443"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "missing CAP_NET_ADMIN" in done.stderr and "CAP_NET_BIND_SERVICE" in done.stderr
    assert "\nhint: start it with sudo" in done.stderr


# What hostile peers send


FORGED = [sys.executable, str(Path(__file__).with_name("forged_segments.py"))]


def counter(hosts: ThreeHosts, name: str) -> int:
    """What the kernel of the proxy's host has counted (`TcpExt`)."""
    lines = [line.split() for line in hosts.run("proxy", "cat", "/proc/net/netstat").splitlines()]
    names, values = (line for line in lines if line[0] == "TcpExt:")
    return int(values[names.index(name)])


@contextlib.contextmanager
def with_a_server(hosts: ThreeHosts, *arguments: str) -> Iterator[tuple[RunningProxy, Load]]:
    with load("server", SERVER, "443", start=hosts.on("server")) as far:
        assert far.line() == "port 443"
        with between(hosts, "--port", "443", *arguments) as it:
            yield it, far


def from_client(hosts: ThreeHosts, count: int, size: int) -> dict[str, Any]:
    words = ["client", SERVER, "443", str(count), str(size)]
    with load(*words, start=hosts.on("client")) as near:
        return near.end()


def test_resets_from_outside_the_window_end_nothing(hosts: ThreeHosts) -> None:
    with with_a_server(hosts) as (it, far):
        out = hosts.run("client", *FORGED, "reset", SERVER, "443")
        assert out.split() == ["survived", "reset"], "and one that is right does"
        assert counter(hosts, "TCPChallengeACK") >= 1
        assert "reset" in it.wait_for("closed")["why"]
        assert from_client(hosts, 1, 1000) == {"done": 1}
        far.end()


def test_a_flood_of_syns_keeps_nobody_out(hosts: ThreeHosts) -> None:
    hosts.set("proxy", "ipv4/tcp_max_syn_backlog", "64")
    hosts.set("proxy", "ipv4/tcp_syncookies", "1")
    hosts.set("proxy", "core/somaxconn", "64")
    with with_a_server(hosts) as (it, _):
        hosts.run("client", *FORGED, "flood", SERVER, "443", "3000")
        assert counter(hosts, "TCPReqQFullDoCookies") > 0
        assert from_client(hosts, 20, 10_000) == {"done": 20}
        assert it.process.poll() is None


def test_late_a_flood_of_syns_takes_no_more_than_the_limit(hosts: ThreeHosts) -> None:
    """Each SYN would be passed on: `limits.connections` bounds them, and who is in has what it asked for."""
    limits = ["--set", "limits.connections=50", "--set", "times.handshake=1 s", "--log-level", "warning"]
    hosts.batch("server", "route add blackhole 192.0.2.96/27", "route add blackhole 192.0.2.128/25")
    words = [*BETWEEN, "--workers", "1", "--port", "443", "--accept", "late", *limits]
    with load("server", SERVER, "443", start=hosts.on("server")) as far:
        assert far.line() == "port 443"
        log = subprocess.Popen(hosts.on("proxy", PROGRAM, *words), stderr=subprocess.PIPE, text=True)
        try:
            wait_for("the rules", lambda: len(rules(hosts)) == 6)
            hosts.run("client", *FORGED, "flood", SERVER, "443", "500")
            assert log.stderr is not None
            assert "limits.connections" in log.stderr.readline()
            threading.Thread(target=log.stderr.read, daemon=True).start()
            wait_for("room", lambda: from_client(hosts, 1, 1000) == {"done": 1})
            assert log.poll() is None
        finally:
            log.kill()
            log.wait()


def test_a_full_accept_queue_loses_nobody(hosts: ThreeHosts) -> None:
    hosts.set("proxy", "core/somaxconn", "4")
    with with_a_server(hosts) as (it, _), contextlib.ExitStack() as stack:
        it.process.send_signal(signal.SIGSTOP)
        words = ["client", SERVER, "443", "30", "1000"]
        near = stack.enter_context(load(*words, start=hosts.on("client")))
        wait_for("a full queue", lambda: counter(hosts, "ListenOverflows") > 0)
        it.process.send_signal(signal.SIGCONT)
        assert near.end() == {"done": 30}
