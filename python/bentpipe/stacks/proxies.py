"""Which kinds of proxies there are: the folders with a `proxy.toml`, found as stacks are.

Folders are looked for in Bentpipe's own `proxies/` and in `BENTPIPE_PROXIES`. A later folder replaces an
earlier one of the same name. What a program must do to be a proxy says `endpoints/CONTRACT.md`, section 5.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bentpipe import paths, strict
from bentpipe.errors import UsageError
from bentpipe.stacks.model import MODES

PLACES = ("terminal", "gateway")  # as a client meets them
TRANSPORTS = ("quic",)  # whose connections a proxy can end
_NAME = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class ProxyKind:
    """What a `proxy.toml` says."""

    folder: Path
    name: str
    title: str
    transport: str  # whose connections it ends
    places: tuple[str, ...]  # where it can stand, in the order of PLACES
    example: str  # a chain
    commands: Mapping[str, tuple[str, ...]]  # mode → arguments, with placeholders
    options: Mapping[str, str]  # name → what it means
    lead_s: float  # how long it is there before the client, with one of these options
    lead_options: frozenset[str]  # as `mode=warm`

    @property
    def default(self) -> str:
        """The chain that has one at each place."""
        return ",".join(self.places)

    def command(self, mode: str) -> list[str]:
        """The argument list that starts it in `mode`. BentpipeError if its program is not there, UsageError
        if it has no such mode.
        """
        if mode not in self.commands:
            raise UsageError(f"{self.name} offers no mode {mode}", f"it has {', '.join(self.commands)}")
        return [self._filled(argument) for argument in self.commands[mode]]

    def lead(self, options: Mapping[str, str]) -> float:
        """For how many seconds it is to be there before the client."""
        given = {f"{key}={value}" for key, value in options.items()}
        return self.lead_s if given & self.lead_options else 0.0

    def _filled(self, argument: str) -> str:
        own = "{programs}/"
        if argument.startswith(own):
            return str(paths.program(argument.removeprefix(own)))
        return argument.replace("{folder}", str(self.folder))


def load(folder: Path) -> ProxyKind:
    """The kind of proxy in `folder`; UsageError if its proxy.toml is not whole and right."""
    table = strict.read(folder / "proxy.toml")
    table.allow("name", "title", "transport", "places", "example", "commands", "lead", "options")
    commands, lead, options = table.table("commands"), table.table("lead"), table.table("options")
    commands.allow(*MODES)
    lead.allow("seconds", "options")
    kind = ProxyKind(
        folder=folder.resolve(),
        name=table.text("name"),
        title=table.text("title"),
        transport=table.text("transport"),
        places=tuple(table.texts("places")),
        example=table.text("example"),
        commands={mode: tuple(commands.texts(mode)) for mode in commands.values},
        options={name: options.text(name) for name in options.values},
        lead_s=lead.number("seconds") if lead.values else 0.0,
        lead_options=frozenset(lead.texts("options")) if lead.values else frozenset(),
    )
    if not _NAME.fullmatch(kind.name) or kind.name == "direct":
        raise table.wrong("name", kind.name, "small letters, digits and -, and not direct")
    if kind.transport not in TRANSPORTS:
        raise table.wrong("transport", kind.transport, f"one of {', '.join(TRANSPORTS)}")
    if not kind.places or list(kind.places) != [one for one in PLACES if one in kind.places]:
        raise table.wrong("places", list(kind.places), f"some of {', '.join(PLACES)}, in this order")
    if not kind.commands or not all(kind.commands.values()):
        raise UsageError(f"{table.file}: commands: no command", "give `virtual-time` or `sockets` one")
    return kind


@cache
def discover() -> Mapping[str, ProxyKind]:
    """All kinds of proxies by name, in order of name."""
    named = [Path(entry) for entry in os.environ.get("BENTPIPE_PROXIES", "").split(":") if entry]
    found: dict[str, ProxyKind] = {}
    for place in (paths.proxies(), *named):
        folders = [place] if (place / "proxy.toml").is_file() else _with_proxy(place)
        if not folders:
            raise UsageError(f"{place}: no proxy.toml in it or one level below", "see BENTPIPE_PROXIES")
        found |= {kind.name: kind for kind in map(load, folders)}
    return dict(sorted(found.items()))


def _with_proxy(place: Path) -> list[Path]:
    return sorted(file.parent for file in place.glob("*/proxy.toml"))
