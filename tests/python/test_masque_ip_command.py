"""`bentpipe masque` with IP packets: a proxy with a pool and clients with TUN devices, in network namespaces.

one ── proxy ── server
two ──┘
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import wait_for
from network import Network, network
from test_connect_ip_go import connect_ip_go, packet  # noqa: F401 (a fixture)

from bentpipe import paths

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("namespaces")]

PROGRAM = str(paths.program("bentpipe-masque"))
CERTS = paths.socket_certs()
IDENTITY = ["--cert", str(CERTS / "cert.pem"), "--key", str(CERTS / "priv.key")]
LOG = ["--log-format", "json"]
POOL = ["--ip-pool", "10.9.0.0/24", "--ip-pool", "fd00:9::/64"]
SERVER = {4: "10.2.0.2", 6: "fd02::2"}
OTHER = "10.3.0.2"  # another address of the server
ALLOW = ["--allow", "10.2.0.0/24:*", "--allow", "[fd02::]/64:*"]
TRANSFER = 3_000_000

# Sends so many bytes to whoever connects, one after the other.
SEND = """
import socket, sys
family = socket.AddressFamily(int(sys.argv[3]))
with socket.create_server((sys.argv[1], int(sys.argv[2])), family=family) as it:
    print("ready", flush=True)
    while True:
        one, peer = it.accept()
        with one:
            one.sendall(bytes(int(sys.argv[4])))
            print(peer[0], flush=True)
"""
# Connects, and prints how many bytes came, or why none did.
TAKE = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) as it:
        print(sum(map(len, iter(lambda: it.recv(65536), b""))))
except OSError as error:
    print(type(error).__name__, error.errno, error)
"""
# Sends a packet as it is.
SPOOF = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as it:
    it.sendto(bytes.fromhex(sys.argv[1]), (sys.argv[2], 0))
"""
METRICS = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())
"""


class Running:
    """A program at a host, with the lines of its log."""

    def __init__(self, net: Network, host: str, *words: str) -> None:
        self.net, self.host = net, host
        command = [PROGRAM, *words, "--metrics", "127.0.0.1:0", *LOG]
        self.process = net.popen(host, command, stderr=subprocess.PIPE)
        self.lines: list[dict[str, Any]] = []
        self.started = self.wait_for("started")

    def wait_for(self, event: str, **fields: Any) -> dict[str, Any]:
        """The next line, from those not read so far on, about such an event."""
        assert self.process.stderr is not None
        for text in self.process.stderr:
            line: dict[str, Any] = json.loads(text)
            self.lines.append(line)
            if line["event"] == event and all(line.get(name) == it for name, it in fields.items()):
                return line
        raise AssertionError(f"no line {event} {fields} in {self.lines}")

    def metrics(self) -> dict[str, float]:
        words = [sys.executable, "-S", "-c", METRICS, f"http://{self.started['metrics']}/metrics"]
        found = re.findall(r"^bentpipe_masque_(\w+) (\S+)$", self.net.run(self.host, *words), re.MULTILINE)
        return {name: float(value) for name, value in found}

    def end(self) -> int:
        """Asks it to end; its exit code. `nsenter` becomes the program, which gets the signal."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)


@contextlib.contextmanager
def world(*clients: str) -> Iterator[Network]:
    """The hosts and their cables. Nothing leads from the clients to the server but a tunnel."""
    with network() as net:
        net.add("proxy", "server", *clients)
        net.settings("proxy", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        net.cable("proxy", "server", ("10.2.0.1/24", "10.2.0.2/24"), ("fd02::1/64", "fd02::2/64"))
        net.run("server", "ip", "address", "add", f"{OTHER}/32", "dev", "lo")
        net.run("proxy", "ip", "route", "add", OTHER, "via", SERVER[4])
        net.run("server", "ip", "route", "add", "10.9.0.0/24", "via", "10.2.0.1")
        net.run("server", "ip", "route", "add", "fd00:9::/64", "via", "fd02::1")
        for number, client in enumerate(clients, 1):
            net.cable("proxy", client, (f"10.1.{number}.1/24", f"10.1.{number}.2/24"))
        yield net


def proxy(net: Network, *words: str, pool: list[str] | None = None) -> Running:
    listen = ["--listen", "0.0.0.0:4433", "--anybody", *IDENTITY]
    return Running(net, "proxy", "proxy", *listen, *(POOL if pool is None else pool), *words)


def client(net: Network, host: str, *words: str) -> Running:
    """A client with a TUN device. The laboratory's certificate is for the name `server`."""
    number = 1 if host == "one" else 2
    template = "https://server:4433/.well-known/masque/ip/{target}/{ipproto}/"
    where = ["--proxy", f"10.1.{number}.1:4433", "--template", template, "--ca", str(CERTS / "ca.pem")]
    return Running(net, host, "client", "--tun", "masque0", *where, *words)


def serve(net: Network, address: str, port: int) -> subprocess.Popen[str]:
    family = "10" if ":" in address else "2"
    words = [sys.executable, "-S", "-c", SEND, address, str(port), family, str(TRANSFER)]
    server = net.popen("server", words, stdout=subprocess.PIPE)
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    return server


def take(net: Network, host: str, address: str, port: int) -> str:
    return net.run(host, sys.executable, "-S", "-c", TAKE, address, str(port)).strip()


def test_pings_and_tcp_pass_in_both_versions_with_an_address_for_each_client() -> None:
    with world("one", "two") as net:
        there = proxy(net, *ALLOW, "--workers", "2")
        clients = {host: client(net, host) for host in ("one", "two")}
        assigned = {host: it.wait_for("assigned")["addresses"] for host, it in clients.items()}
        assert sorted(assigned.values()) == [["10.9.0.2", "fd00:9::2"], ["10.9.0.3", "fd00:9::3"]]
        for version, address in SERVER.items():
            server = serve(net, address, 8000)
            for host in clients:
                assert net.pings(host, address)
                assert take(net, host, address, 8000) == str(TRANSFER)
                own = assigned[host][0 if version == 4 else 1]
                assert server.stdout is not None and server.stdout.readline() == f"{own}\n"
        routes = net.run("one", "ip", "-4", "route", "show", "dev", "masque0")
        assert "10.2.0.0/24" in routes
        counted = there.metrics()
        assert (counted["requests"], counted["assigned_addresses"]) == (2, 4)
        assert counted["sent_bytes_total"] > 4 * TRANSFER
        assert counted["not_allowed_packets_total"] == counted["unsent_packets_total"] == 0
        assert counted["refused_packets_total"] == 0
        assert clients["one"].end() == 0
        closed = there.wait_for("closed")
        assert closed["bytes_to_client"] > 2 * TRANSFER
        wait_for("the addresses", lambda: there.metrics()["assigned_addresses"] == 2)
        assert clients["two"].end() == 0
        assert there.end() == 0


def test_only_what_is_allowed_is_reached_and_the_sender_is_told() -> None:
    with world("one") as net:
        there = proxy(net, *ALLOW, "--allow", f"{OTHER}:8000")
        near = client(net, "one")
        near.wait_for("assigned")
        serve(net, OTHER, 8000)
        serve(net, OTHER, 8001)
        assert take(net, "one", OTHER, 8000) == str(TRANSFER)
        # ICMP's code 13, communication administratively prohibited, is EHOSTUNREACH or EACCES.
        assert re.match(r"(OSError 113|PermissionError 13) ", take(net, "one", OTHER, 8001))
        counted = there.metrics()
        assert counted["not_allowed_packets_total"] >= 1 and counted["icmp_errors_total"] >= 1
        assert net.pings("one", OTHER), "a rule for ports is of ICMP, too"
        # No route of the tunnel leads to the proxy itself, through whose network it is reached.
        assert "10.1." not in net.run("one", "ip", "-4", "route", "show", "dev", "masque0")
        # Nobody has this address of the pool.
        words = net.inside("server", "ping", "-n", "-c1", "-W5", "10.9.0.77")
        said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        assert "Destination Host Unreachable" in said


def test_the_proxys_own_addresses_are_reached_by_a_network_alone() -> None:
    with world("one") as net:
        # As if these were addresses of the public Internet.
        net.run("proxy", "ip", "address", "add", "8.8.8.1/24", "dev", "server")
        net.run("server", "ip", "address", "add", "8.8.8.2/24", "dev", "proxy")
        there = proxy(net, "--allow", "public:*")
        near = client(net, "one", "--route", "8.8.8.0/24")
        near.wait_for("assigned")
        assert net.pings("one", "8.8.8.2")
        assert not net.pings("one", "8.8.8.1")
        refused = there.metrics()["not_allowed_packets_total"]
        assert refused >= 1
        # An address that the machine gets later is its own, too.
        net.run("server", "ip", "address", "add", "8.8.8.3/24", "dev", "proxy")
        assert net.pings("one", "8.8.8.3")
        net.run("server", "ip", "address", "del", "8.8.8.3/24", "dev", "proxy")
        net.run("proxy", "ip", "address", "add", "8.8.8.3/24", "dev", "server")
        wait_for("its own", lambda: not net.pings("one", "8.8.8.3"))


def test_whatever_the_proxys_kernel_takes_for_its_own_is_not_public() -> None:
    with world("one") as net:
        # As if these were addresses of the public Internet. Forwarding makes a router of the
        # proxy, which has the first address of its network (RFC 4291, section 2.6.1).
        addresses = ("8.8.8.1/24", "8.8.8.2/24"), ("2a00:1450:1::1/64", "2a00:1450:1::2/64")
        for one, other in addresses:
            words = ["nodad"] if ":" in one else ["broadcast", "+"]
            net.run("proxy", "ip", "address", "add", one, "dev", "server", *words)
            net.run("server", "ip", "address", "add", other, "dev", "proxy", *words)
        net.run("server", "ip", "route", "add", "8.8.4.0/24", "via", "8.8.8.1")
        there = proxy(net, "--allow", "public:*")
        near = client(net, "one", "--route", "8.8.0.0/16", "--route", "2a00:1450::/32")
        near.wait_for("assigned")
        assert net.pings("one", "8.8.8.2") and net.pings("one", "2a00:1450:1::2")
        assert there.metrics()["not_allowed_packets_total"] == 0
        # An address that no device has, and the machine answers for.
        net.run("proxy", "ip", "route", "add", "local", "8.8.4.0/24", "dev", "lo")
        assert net.pings("server", "8.8.4.4")
        wait_for("its own", lambda: not net.pings("one", "8.8.4.4"))
        for address in ("8.8.4.4", "8.8.8.255", "2a00:1450:1::"):
            before = there.metrics()["not_allowed_packets_total"]
            assert not net.pings("one", address)
            assert there.metrics()["not_allowed_packets_total"] > before, address


@pytest.mark.parametrize("host", ["one", "proxy"])
def test_without_its_device_a_program_ends_with_an_error(host: str) -> None:
    with world("one") as net:
        there = proxy(net, *ALLOW, "--workers", "2")
        near = client(net, "one")
        near.wait_for("assigned")
        # A device that is down for a while is still there.
        net.run(host, "ip", "link", "set", "masque0", "down")
        net.run(host, "ip", "link", "set", "masque0", "up")
        program = near if host == "one" else there
        assert program.metrics()["assigned_addresses" if host == "proxy" else "requests"] > 0
        net.run(host, "ip", "link", "delete", "masque0")
        assert program.process.wait(timeout=120) == 1


def test_who_gets_no_address_waits_until_one_is_free() -> None:
    with world("one", "two") as net:
        there = proxy(net, *ALLOW, pool=["--ip-pool", "10.9.0.0/30"])
        first = client(net, "one")
        assert first.wait_for("assigned")["addresses"] == ["10.9.0.2"]
        second = client(net, "two")
        assert "503" in second.wait_for("tunnel-failed")["why"]
        refused = there.wait_for("request-refused")
        assert (refused["status"], refused["why"]) == (503, "ip.pool")
        assert there.metrics()["exhausted_requests_total"] >= 1
        assert first.end() == 0
        assert second.wait_for("assigned")["addresses"] == ["10.9.0.2"]
        assert net.pings("two", SERVER[4])


def test_a_client_does_not_send_from_anothers_address() -> None:
    with world("one", "two") as net:
        there = proxy(net, *ALLOW)
        first, second = client(net, "one"), client(net, "two")
        own = first.wait_for("assigned")["addresses"][0]
        second.wait_for("assigned")
        echo = struct.pack(">BBHHH", 8, 0, 0xF7FF, 0, 0)
        spoofed = packet(own, SERVER[4], 1, echo)
        before = first.metrics()["received_datagrams_total"]
        net.run("two", sys.executable, "-S", "-c", SPOOF, spoofed.hex(), SERVER[4])
        wait_for("it", lambda: second.metrics()["refused_packets_total"] == 1)
        assert net.pings("two", SERVER[4])
        assert there.metrics()["received_datagrams_total"] == 1
        assert first.metrics()["received_datagrams_total"] == before


def test_clients_reach_each_other_only_if_the_pool_is_allowed() -> None:
    for allow, is_reached in ([], False), (["--allow", "10.9.0.0/24:*"], True):
        with world("one", "two") as net:
            proxy(net, *ALLOW, *allow)
            first, second = client(net, "one"), client(net, "two")
            first.wait_for("assigned")
            other = second.wait_for("assigned")["addresses"][0]
            assert net.pings("one", SERVER[4])
            assert net.pings("one", other) == is_reached


def test_another_implementation_gets_an_address_and_an_answer(
    connect_ip_go: Path,  # noqa: F811 (the fixture)
) -> None:
    with world("one", "two") as net:
        there = proxy(net, *ALLOW)
        assert client(net, "two").wait_for("assigned")["addresses"][0] == "10.9.0.2"
        echo = struct.pack(">BBHHH", 8, 0, 0xF7FF, 0, 0)
        words = [str(connect_ip_go), "client", str(CERTS / "ca.pem"), "10.1.1.1:4433", "0.0.0.0/32"]
        right = packet("10.9.0.3", SERVER[4], 1, echo)
        said = net.run("one", *words, right.hex()).splitlines()
        assert said[:3] == ["200", "assigned 10.9.0.3/32", "route 10.2.0.0 10.2.0.255 0"], said
        answer = bytes.fromhex(said[-1].removeprefix("packet "))
        assert (answer[12:16], answer[16:20], answer[20]) == (right[16:20], right[12:16], 0)
        assert there.metrics()["refused_packets_total"] == 0


def test_a_reload_changes_routes_and_what_packets_may_reach(tmp_path: Path) -> None:
    config = tmp_path / "masque.toml"

    def write(allow: str) -> None:
        config.write_text(f'[targets]\nallow = ["{allow}"]\n')

    def routes() -> str:
        return net.run("one", "ip", "-4", "route", "show", "dev", "masque0")

    with world("one") as net:
        write("10.2.0.0/24:*")
        there = proxy(net, "--config", str(config))
        near = client(net, "one")
        near.wait_for("assigned")
        assert net.pings("one", SERVER[4]) and OTHER not in routes()
        write(f"{OTHER}:*")
        there.process.send_signal(signal.SIGHUP)
        there.wait_for("reloaded")
        near.wait_for("assigned")
        assert OTHER in routes() and "10.2.0.0/24" not in routes()
        assert net.pings("one", OTHER)
        assert near.metrics()["requests_total"] == 1, "the request goes on"


def test_a_client_comes_back_after_the_proxy_has_gone() -> None:
    with world("one") as net:
        there = proxy(net, *ALLOW)
        near = client(net, "one")
        near.wait_for("assigned")
        assert net.pings("one", SERVER[4])
        # Its request never ends by itself: the second signal ends the proxy.
        there.process.send_signal(signal.SIGTERM)
        there.wait_for("draining")
        assert there.end() == 0
        near.wait_for("disconnected")
        proxy(net, *ALLOW)
        near.wait_for("assigned")
        assert net.pings("one", SERVER[4])


@pytest.mark.parametrize(
    "words",
    [
        ["proxy", "--anybody", "--allow", "10.2.0.0/24:*", *POOL],
        ["client", "--tun", "masque0", "--proxy", "127.0.0.1:9", "--no-verify"],
    ],
)
def test_who_may_not_make_devices_is_told_what_is_missing(words: list[str]) -> None:
    # Root in a user namespace has no privileges over the machine's network.
    command = ["unshare", "--user", "--map-root-user", "--", PROGRAM, *words]
    if "--tun" not in words:
        command += ["--listen", "127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2 and "CAP_NET_ADMIN" in done.stderr, done
