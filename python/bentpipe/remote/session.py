"""A session on a link: connections to both hosts, the programs that were brought there, and what a trial
needs there.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bentpipe.errors import BentpipeError
from bentpipe.remote import lab
from bentpipe.remote.channel import Refused
from bentpipe.remote.clock import Offset, between, offset
from bentpipe.remote.host import HostConnection
from bentpipe.remote.links import Link, LinkHost, Links
from bentpipe.remote.ssh import HostGone
from bentpipe.stacks.model import ROLES, Stack

_AGAIN_S = 2.0  # between tries to reach a host
_TOOL_S = 5.0  # for a program to begin to capture, or to end
_DUMPCAP, _TCPDUMP = "dumpcap", "tcpdump"
_BEGUN = {_DUMPCAP: "File: ", _TCPDUMP: "tcpdump: listening on"}
PROBE, ECHO, CAPTURE = "probe", "echo", "capture"


@dataclass(frozen=True)
class BroughtStack:
    """A stack's programs on a host, and how its command begins there."""

    folder: str
    hashes: Mapping[str, str]  # path there → SHA-256


@dataclass
class HostPlace:
    """The state of a host in a session."""

    connection: HostConnection
    stacks: dict[str, BroughtStack] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)  # that were put into its folder
    capture: str | None = None  # the program that captures; None: nothing may
    why_no_capture: str = "nobody looked"

    @property
    def folder(self) -> str:
        """The connection's folder there."""
        return str(self.connection.facts["folder"])


class LinkSession:
    """Both hosts of a link while they are connected."""

    def __init__(self, links: Links, name: str) -> None:
        """Connect to both. HostGone if one cannot be reached."""
        self.name, self.link, self.links = name, links.named(name), links
        self.places: dict[str, HostPlace] = {}
        try:
            for role in ROLES:
                self.places[role] = HostPlace(self._connected(role))
            for role in ROLES:
                self._check_machine(role)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave both hosts, where nothing remains but programs in the cache."""
        for place in self.places.values():
            place.connection.close()

    @property
    def is_gone(self) -> bool:
        return any(place.connection.is_gone for place in self.places.values())

    def on(self, role: str) -> HostConnection:
        return self.places[role].connection

    def address(self, ip: int) -> str:
        """The server's address for clients. BentpipeError if it has none of that version."""
        server = self.link.server
        found = server.ipv4 if ip == 4 else server.ipv6
        if found is None:
            raise BentpipeError(
                f"{self.links.file}: links.{self.name}.server has no ipv{ip}",
                f"add it, or leave out --ip {ip}",
            )
        return f"[{found}]" if ip == 6 else found

    def listening(self, ip: int) -> str:
        """The address on which the server listens."""
        listen = self.link.server.listen
        if listen is not None:
            return f"[{listen}]" if ip == 6 else listen
        return "[::]" if ip == 6 else "0.0.0.0"

    def bring(self, stack: Stack, role: str) -> BroughtStack:
        """Bring a stack's programs to a host's cache, each checked by its hash."""
        place = self.places[role]
        if stack.name not in place.stacks:
            place.stacks[stack.name] = _bring(place.connection, stack.entry.folder)
        return place.stacks[stack.name]

    def own_program(self, role: str) -> BroughtStack:
        """Bentpipe's own program, which is there already."""
        digest = self.on(role).digest
        path = f"{self.on(role).facts['cache']}/{digest}/bentpipe-remote"
        return BroughtStack(path, {path: digest})

    def put_once(self, role: str, path: str, content: bytes | Path) -> str:
        """Put a file into the folder of a host, if it is not there; its path."""
        place = self.places[role]
        if path not in place.files:
            place.connection.put(path, content)
            place.files.add(path)
        return f"{place.folder}/{path}"

    def find_captures(self) -> None:
        """Find out which programs may capture on both hosts."""
        for role, place in self.places.items():
            found = [tool for tool in _BEGUN if place.connection.facts["tools"].get(tool)]
            place.why_no_capture = "there is neither dumpcap nor tcpdump"
            for tool in found:
                place.capture = tool
                why = self.start_capture(role, "trying", "udp port 1")
                if why is None:
                    self.end_capture(role)
                    break
                place.capture, place.why_no_capture = None, why

    @property
    def can_capture(self) -> bool:
        """Whether packets can be captured at both ends: a single side cannot be joined."""
        return all(place.capture is not None for place in self.places.values())

    def start_capture(self, role: str, folder: str, what: str) -> str | None:
        """Start to capture `what` into a file of that folder; the reason why that cannot be, in words, or
        None.
        """
        place = self.places[role]
        assert place.capture is not None
        tool = place.connection.facts["tools"][place.capture]
        place.connection.ask("make", path=folder)
        file = f"{place.folder}/{folder}/capture"
        words = [tool, "-i", self._host(role).device or "any"]
        if place.capture == _DUMPCAP:
            words += ["-q", "-s", "0", "-B", "32", "-f", what, "-w", file]
        else:
            stay = ["-Z", "root"] if place.connection.facts["root"] else []
            words += ["-n", "-U", "-s", "0", "-B", "32768", *stay, "-w", file, what]
        place.connection.start(CAPTURE, words, ready=_BEGUN[place.capture])
        event = place.connection.wait(CAPTURE, ["ready", "ended"], _TOOL_S)
        if event is not None and event["event"] == "ready":
            return None
        ended = place.connection.end(CAPTURE, "KILL", _TOOL_S)
        lines = ended["said"].strip().splitlines()
        return f"{place.capture}: {lines[-1] if lines else 'it does not begin'}"

    def end_capture(self, role: str) -> dict[str, Any]:
        """End a capture; how its program ended."""
        return self.on(role).end(CAPTURE, "INT", _TOOL_S)

    def start_monitor(self, ip: int) -> bool:
        """Start the monitor; whether it runs."""
        if self.link.monitor is None:
            return False
        port = self.link.server.udp_port + 1
        own = self.own_program("server")
        words = [own.folder, "echo", f"{self.listening(ip)}:{port}"]
        self.on("server").start(ECHO, words, ready="ready", sha256=own.hashes[own.folder])
        event = self.on("server").wait(ECHO, ["ready", "ended"], _TOOL_S)
        if event is None or event["event"] != "ready":
            return False
        own = self.own_program("client")
        words = [own.folder, "probe", f"{self.address(ip)}:{port}", str(self.link.monitor.every_ms)]
        self.on("client").start(PROBE, words, sha256=own.hashes[own.folder])
        return True

    def end_monitor(self) -> str:
        """End the monitor; its measurements, as JSON."""
        ended = self.on("client").end(PROBE, "TERM", _TOOL_S)
        self.on("server").end(ECHO, "TERM", _TOOL_S)
        return str(ended["said"]) if ended["code"] == 0 else "[]"

    def clock(self) -> Offset:
        """The lead of the server's clock over the client's. BentpipeError, as of `clock_of`."""
        client, server = (self.clock_of(role) for role in ROLES)
        return between(client, server)

    def clock_of(self, role: str) -> Offset:
        """The lead of a host's clock over this machine's. BentpipeError where the asymmetry in the file is
        impossible.
        """
        told_ms = self._host(role).control_asymmetry_ms
        try:
            return offset(self.on(role).exchanges, told_ms * 1e6)
        except ValueError as error:
            where = f"{self.links.file}: links.{self.name}.{role}.control_asymmetry_ms"
            hint = "by how much SSH's way to the host takes longer than its way back; leave it out if equal"
            raise BentpipeError(f"{where}: {told_ms:g} cannot be: {error}", hint) from None

    def forget_clock(self) -> None:
        """Let only exchanges from now on count."""
        for role in ROLES:
            self.on(role).exchanges.clear()

    def ask_clocks(self, times: int) -> None:
        for role in ROLES:
            self.on(role).exchange(times)

    def route(self, ip: int) -> list[str]:
        """The route from client to server, by the tool that the client's host has; empty if it has none."""
        tools = self.on("client").facts["tools"]
        address = self.address(ip).strip("[]")
        for tool, options in (
            ("traceroute", ["-n", "-q", "1", "-w", "3", "-m", "20"]),
            ("tracepath", ["-n"]),
        ):
            if tools.get(tool):
                with contextlib.suppress(Refused):
                    ended = self.on("client").run("route", [tools[tool], *options, address], 60.0)
                    return str(ended["said"]).splitlines() if ended else []
        return []

    def cleaned_bytes(self) -> dict[str, int]:
        """Remove the programs that were brought; their bytes, by role."""
        return {role: int(self.on(role).ask("clean")["removed_bytes"]) for role in ROLES}

    def _host(self, role: str) -> LinkHost:
        link: Link = self.link
        return link.client if role == "client" else link.server

    def _connected(self, role: str) -> HostConnection:
        host = self._host(role)
        try:
            return HostConnection(role, host, self.links.file.parent)
        except HostGone as gone:
            if self.link.laboratory and host.ssh_config and lab.is_missing(self.links.path(host.ssh_config)):
                raise HostGone(str(gone), "start the laboratory, in another terminal: bentpipe lab") from None
            raise

    def _check_machine(self, role: str) -> None:
        facts = self.on(role).facts
        if facts["system"] != "Linux":
            raise HostGone(f"{self.on(role).where}: it runs {facts['system']}, and Linux is needed")


def _bring(connection: HostConnection, folder: Path) -> BroughtStack:
    """Bring the files of a folder into the host's cache, under the hash of them all."""
    files = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*")) if file.is_file()}
    hashes = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
    bundle = bundle_hash(hashes)
    wanted = [{"path": name, "sha256": digest} for name, digest in hashes.items()]
    for name in connection.ask("absent", bundle=bundle, files=wanted)["absent"]:
        file = files[name]
        connection.ask(
            "program",
            file.read_bytes(),
            bundle=bundle,
            path=name,
            sha256=hashes[name],
            executable=bool(file.stat().st_mode & 0o100),
        )
    place = f"{connection.facts['cache']}/{bundle}"
    return BroughtStack(place, {f"{place}/{name}": digest for name, digest in hashes.items()})


def bundle_hash(hashes: Mapping[str, str]) -> str:
    """The name of a bundle: a hash over the names of its files and what is in them."""
    lines = "".join(f"{digest} {name}\n" for name, digest in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def connected(links: Links, name: str, stopped: Callable[[], bool]) -> LinkSession:
    """A session on a link. Connecting is tried again while its hosts may be unreachable; then HostGone."""
    deadline = time.monotonic() + links.named(name).patience_s
    while True:
        try:
            return LinkSession(links, name)
        except HostGone:
            if stopped() or time.monotonic() >= deadline:
                raise
            time.sleep(_AGAIN_S)
