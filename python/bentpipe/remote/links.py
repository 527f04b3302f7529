"""`links.toml`: real links, by name. Where the hosts of client and server are, how they are reached, under
which address the server is found over the link, and what is known of it.

What is nominal becomes the scenario of the link's trials: measures that stand on a rate or a delay are
nominal then, and are left out where it is not known.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import math
import re
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from bentpipe import strict, workload
from bentpipe.errors import UsageError, one_of
from bentpipe.plan import scenarios
from bentpipe.plan.scenarios import Scenario, ScenarioError
from bentpipe.remote import lab

Word = Annotated[str, msgspec.Meta(pattern=r"\A[^-\s][^\s]*\Z", description="a name without blanks")]
Text = Annotated[str, msgspec.Meta(pattern=r"\S", description="a text that is not empty")]
Command = Annotated[
    tuple[str, ...], msgspec.Meta(min_length=1, description='a program and its arguments: ["…", "…"]')
]
Port = Annotated[int, msgspec.Meta(ge=1, le=65534, description="a port, 1 to 65534")]
NAME = "[A-Za-z0-9][A-Za-z0-9.-]*"
OURS = "here"  # the machine that runs Bentpipe


class LinkHost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A host of a link: how it is reached, by OpenSSH and with the user's own keys and agent."""

    host: Word  # name, address, or an alias of the user's ssh_config
    user: Word | None = None
    port: Port | None = None
    ssh_config: Text | None = None  # a file, in place of the user's own; of a laboratory's host, its
    device: Word | None = None  # the one towards the link, for captures; None: any
    control_asymmetry_ms: float = 0.0  # by how much SSH's way there takes longer than its way back
    clock_ahead_ms: int = 0  # for tests: its clock is said to be so far ahead


class LinkServer(LinkHost, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The server's host, and its address over the link."""

    ipv4: Word | None = None
    ipv6: Word | None = None
    listen: Word | None = None  # its own address, where the one that clients know is a NAT's; None: all
    udp_port: Port = 4433  # the next one is for the monitor


class Nominal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The nominal properties of a link, in the terms of scenarios."""

    delay: Text  # one way, each way: half of what an idle ping takes, where nobody says
    forward_rate: Text | None = None
    return_rate: Text | None = None
    source: Text = "not said"


class Traffic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The allowance of a link, both ways together."""

    allowance: Text
    period: Literal["day", "month", "ever"] = "month"


class Statistics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that prints the link's own statistics, after each trial."""

    command: Command
    on: Literal["client", "server", "here"] = "client"


class Weather(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The source of the weather: either a file or a command of this machine."""

    file: Text | None = None
    command: Command | None = None


class Monitor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The monitor: a small flow beside trials."""

    every_ms: Annotated[int, msgspec.Meta(ge=10, description="milliseconds, at least 10")] = 200


class Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A real link."""

    client: LinkHost
    server: LinkServer
    nominal: Nominal
    title: str = ""
    operator: str = ""
    orbit: Literal["GEO", "MEO", "LEO", "HAPS", "terrestrial", ""] = ""
    laboratory: bool = False  # it is emulated after all: pages say so
    timeout: Text = "300 s"
    patience_s: Annotated[int, msgspec.Meta(ge=0, description="seconds")] = 60  # a host may stay away so long
    traffic: Traffic | None = None
    statistics: Statistics | None = None
    weather: Weather | None = None
    monitor: Monitor | None = Monitor()


class LinksFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a file of links."""

    links: dict[str, Link]


class Links:
    """The links of a file."""

    def __init__(self, file: Path) -> None:
        """Read `file`; UsageError for what cannot be meant."""
        self.file = file
        self._links = {name: _with_lab(link) for name, link in strict.read(file, LinksFile).links.items()}
        if not self._links:
            raise UsageError(f"{file}: links: there is none", "add a table [links.NAME]")
        for name, link in self._links.items():
            self._check(name, link)

    @property
    def names(self) -> list[str]:
        return list(self._links)

    def named(self, name: str) -> Link:
        """The link of that name; UsageError if there is none."""
        if name not in self._links:
            raise UsageError(f'{self.file}: there is no link "{name}"', one_of(name, self.names, "links"))
        return self._links[name]

    def path(self, text: str) -> Path:
        """A path in the file, relative to the file's folder."""
        return self.file.parent / Path(text).expanduser()

    def scenario(self, name: str) -> Scenario:
        """The scenario of a link: its nominal properties, under the link's name."""
        link = self.named(name)
        with tempfile.TemporaryDirectory(prefix="bentpipe-") as folder:
            file = Path(folder) / f"{name}.toml"
            file.write_text(_scenario(link))
            try:
                found = scenarios.resolve(str(file))
            except ScenarioError as error:
                what = str(error).replace(str(file), f"{self.file}: links.{name}.nominal")
                raise UsageError(
                    what, error.hint or "as in scenarios: docs/reference/scenarios.md"
                ) from error
        known = {"operator": link.operator, "orbit": link.orbit, "laboratory": link.laboratory}
        return dataclasses.replace(found, label=name, summary={**found.summary, "link": known})

    def allowance_bytes(self, name: str) -> int | None:
        """The allowance of a link in its period; None: not given."""
        traffic = self.named(name).traffic
        where = f"{self.file}: links.{name}.traffic.allowance"
        return None if traffic is None else workload.size(traffic.allowance, where)

    def _check(self, name: str, link: Link) -> None:
        key = f"links.{name}"
        if not re.fullmatch(NAME, name):
            raise strict.wrong(self.file, "links", name, "a name of letters, digits, . and -")
        if link.server.ipv4 is None and link.server.ipv6 is None:
            raise UsageError(
                f'{self.file}: the key "{key}.server.ipv4" is missing',
                "add it or ipv6: the address under which clients find the server over the link",
            )
        for part, known in (("ipv4", (4,)), ("ipv6", (6,)), ("listen", (4, 6))):
            value = getattr(link.server, part)
            if value is not None and _version(value) not in known:
                what = "an IP address" if part == "listen" else f"an address of IPv{known[0]}"
                raise strict.wrong(self.file, f"{key}.server.{part}", value, what)
        for role, host in (("client", link.client), ("server", link.server)):
            if not math.isfinite(value := host.control_asymmetry_ms):
                where = f"{key}.{role}.control_asymmetry_ms"
                raise strict.wrong(self.file, where, value, "a number of milliseconds")
        if link.weather and (link.weather.file is None) == (link.weather.command is None):
            raise UsageError(f"{self.file}: {key}.weather: one of file and command", "write one of them")
        self.allowance_bytes(name)


def _with_lab(link: Link) -> Link:
    """The link, whose hosts are looked for in the laboratory if they are called as its own."""
    client, server = link.client, link.server
    if client.ssh_config is None and (config := lab.ssh_config(client.host)):
        client = msgspec.structs.replace(client, ssh_config=str(config))
    if server.ssh_config is None and (config := lab.ssh_config(server.host)):
        server = msgspec.structs.replace(server, ssh_config=str(config))
    return msgspec.structs.replace(link, client=client, server=server)


def _version(address: str) -> int | None:
    try:
        return ipaddress.ip_address(address).version
    except ValueError:
        return None


def _scenario(link: Link) -> str:
    nominal = link.nominal
    lines = [
        f"title = {json.dumps(link.title or 'a real link')}",
        f"source = {json.dumps(f'nominal figures of a real link: {nominal.source}')}",
        f"timeout = {json.dumps(link.timeout)}",
    ]
    for way, rate in (("forward", nominal.forward_rate), ("return", nominal.return_rate)):
        lines.append(f"[satellite.{way}]")
        if rate is not None:
            lines.append(f"rate = {json.dumps(rate)}")
        lines.append(f"delay = {json.dumps(nominal.delay)}")
    return "\n".join(lines) + "\n"
