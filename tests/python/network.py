"""A small network of this machine's own: hosts are network namespaces, with a cable between two of them."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

ROOT = ["unshare", "--user", "--map-root-user", "--net"]
LASTING = ["sh", "-c", "echo ready && exec sleep infinity"]
TOOLS = ("ip", "nsenter", "ping", "sysctl", "unshare")


class Network:
    """Hosts by name. The user is root in them, and nobody else outside of them is disturbed."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._hosts: dict[str, int] = {}

    def add(self, *names: str) -> None:
        """Adds hosts. The first one's user namespace is that of all."""
        for name in names:
            command = self.inside(next(iter(self._hosts)), "unshare", "--net") if self._hosts else ROOT
            process = subprocess.Popen([*command, *LASTING], stdout=subprocess.PIPE, text=True)
            self._stack.callback(process.wait)
            self._stack.callback(process.kill)
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            self._hosts[name] = process.pid
            self.run(name, "ip", "link", "set", "lo", "up")

    def inside(self, name: str, *words: str) -> list[str]:
        """The command that runs another one at a host."""
        enter = ["nsenter", f"--target={self._hosts[name]}", "--user", "--net", "--preserve-credentials"]
        return [*enter, "--", *words]

    def run(self, name: str, *words: str) -> str:
        """Runs a command that succeeds; what it prints."""
        done = subprocess.run(self.inside(name, *words), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{name}: {words}: {done.stderr}{done.stdout}"
        return done.stdout

    def cable(self, one: str, other: str, *addresses: tuple[str, str]) -> None:
        """Connects two hosts; `addresses`: of each of them, with prefix lengths."""
        self.run(
            one, "ip", "link", "add", other, "type", "veth", "peer", one, "netns", str(self._hosts[other])
        )
        for host, device, which in ((one, other, 0), (other, one, 1)):
            for pair in addresses:
                self.run(host, "ip", "address", "add", pair[which], "dev", device, *no_search(pair[which]))
            self.run(host, "ip", "link", "set", device, "up")

    def settings(self, name: str, *settings: str) -> None:
        """Settings of a host's kernel, such as `net.ipv4.ip_forward=1`."""
        self.run(name, "sysctl", "-qw", *settings)

    def pings(self, name: str, address: str) -> bool:
        """Whether a host answers another's ping within seconds."""
        words = self.inside(name, "ping", "-n", "-c1", "-W5", address)
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    def popen(self, name: str, words: Sequence[str], **how: Any) -> subprocess.Popen[str]:
        """Starts a command at a host, which is killed at the end."""
        process = subprocess.Popen(self.inside(name, *words), text=True, **how)
        self._stack.callback(process.communicate)
        self._stack.callback(process.kill)
        return process


def no_search(address: str) -> list[str]:
    """An address of IPv6 works at once without the search for duplicates."""
    return ["nodad"] if ":" in address else []


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """A network without hosts, which goes at the end with all that runs in it."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"not on the PATH: {' '.join(missing)}")
    with contextlib.ExitStack() as stack:
        yield Network(stack)
