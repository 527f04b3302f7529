"""A client, a proxy and a server, each in a network namespace of its own, made without privileges.

    client ──192.0.2.0/24── proxy ──198.51.100.0/24── server

The proxy's host has the devices `clients` and `servers`; it forwards nothing. All is gone with `close`, or
with the process that made it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from children import wait_for

CLIENT, SERVER = "192.0.2.1", "198.51.100.1"
CLIENT6, SERVER6 = "2001:db8:1::1", "2001:db8:2::1"
_STAY = ["sh", "-c", "echo here; exec sleep infinity"]


class ThreeHosts:
    """The three hosts; `on` says how a command is started on one."""

    def __init__(self) -> None:
        self._anchors: dict[str, subprocess.Popen[bytes]] = {}
        # Who has the user namespace, and the proxy's network namespace in it.
        self._anchors["proxy"] = _anchor(["unshare", "--user", "--map-root-user", "--net", "--", *_STAY])
        for host in ("client", "server"):
            inside = ["nsenter", *self._user(), "--", "unshare", "--net", "--", *_STAY]
            self._anchors[host] = _anchor(inside)
        client, server = (self._anchors[host].pid for host in ("client", "server"))
        self.batch(
            "proxy",
            "link set lo up",
            f"link add clients type veth peer name eth0 netns {client}",
            f"link add servers type veth peer name eth0 netns {server}",
            *_device("clients", "192.0.2.254/24", "2001:db8:1::2/64"),
            *_device("servers", "198.51.100.254/24", "2001:db8:2::2/64"),
        )
        for host, own, own6, via, via6 in (
            ("client", CLIENT, CLIENT6, "192.0.2.254", "2001:db8:1::2"),
            ("server", SERVER, SERVER6, "198.51.100.254", "2001:db8:2::2"),
        ):
            ways = [f"route add default via {way}" for way in (via, via6)]
            self.batch(host, "link set lo up", *_device("eth0", f"{own}/24", f"{own6}/64"), *ways)

    def batch(self, host: str, *lines: str) -> None:
        """Lines for `ip`, which must succeed."""
        words = self.on(host, "ip", "-batch", "-")
        done = subprocess.run(words, input="\n".join(lines), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def on(self, host: str, *command: str) -> list[str]:
        """The words that start a command there."""
        anchor = self._anchors[host].pid
        return ["nsenter", *self._user(), f"--net=/proc/{anchor}/ns/net", "--", *command]

    def run(self, host: str, *command: str) -> str:
        """What a command prints there, which must succeed."""
        done = subprocess.run(self.on(host, *command), capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def set(self, host: str, name: str, value: str) -> None:
        """Sets a sysctl of its network."""
        self.run(host, "sh", "-c", f"echo '{value}' > /proc/sys/net/{name}")

    def close(self) -> None:
        for anchor in self._anchors.values():
            anchor.kill()
            anchor.wait()
            assert anchor.stdout is not None
            anchor.stdout.close()

    def _user(self) -> list[str]:
        anchor = self._anchors["proxy"].pid
        return [f"--user=/proc/{anchor}/ns/user", "--preserve-credentials"]


def _device(name: str, address: str, address6: str) -> list[str]:
    return [
        f"link set {name} up",
        f"address add {address} dev {name}",
        f"address add {address6} dev {name} nodad",
    ]


def _anchor(command: list[str]) -> subprocess.Popen[bytes]:
    """A process that stays, once it is in its namespaces."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"here\n"
    wait_for("its namespaces", lambda: Path(f"/proc/{process.pid}/ns/net").exists())
    return process
