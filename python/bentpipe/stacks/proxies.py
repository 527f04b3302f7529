"""The catalogue of kinds of proxies: the folders with a `proxy.toml`, found as stacks are.

Folders are looked for in Bentpipe's own `proxies/` and in `BENTPIPE_PROXIES`. A later folder replaces an
earlier one of the same name. What a program must do to be a proxy says `endpoints/CONTRACT.md`, section 5.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from bentpipe import paths, strict
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.stacks import guest
from bentpipe.stacks.model import Carries, Mode

PLACES = ("terminal", "gateway")  # as a client meets them
TRANSPORTS = ("quic", "tcp")  # whose connections a proxy can end


@dataclass(frozen=True)
class ProxyKind:
    """A kind of proxy, as its `proxy.toml` describes it."""

    folder: Path
    name: str
    title: str
    transport: str  # whose connections it ends
    places: tuple[str, ...]  # where it can stand, in the order of PLACES
    example: str  # a chain
    commands: Mapping[str, tuple[str, ...]]  # mode → arguments, with placeholders
    options: Mapping[str, str]  # name → what it means
    transparent: bool  # client and server speak to each other's addresses
    carries: Carries  # what its datagrams are in virtual time
    lead_s: float  # how long it is there before the client, with one of these options
    lead_options: frozenset[str]  # as `mode=warm`, or `pool` whatever it is
    together: tuple[str, ...]  # options that proxies at all places have, or none

    @property
    def default(self) -> str:
        """The chain with a proxy at each place."""
        return ",".join(self.places)

    def command(self, mode: str) -> list[str]:
        """The argument list that starts it in `mode`. BentpipeError if its program is not there, UsageError
        if it has no such mode.
        """
        if mode not in self.commands:
            raise UsageError(f"{self.name} offers no mode {mode}", f"it has {', '.join(self.commands)}")
        if any("{guest}" in word for word in self.commands[mode]) and (why := guest.load().not_installed()):
            what = f"{self.name} lives in a guest in virtual time, and the guest is not installed: {why}"
            raise BentpipeError(what, "install it with `bentpipe stacks install linux`")
        return [self._filled(argument) for argument in self.commands[mode]]

    def lead(self, options: Mapping[str, str]) -> float:
        """The number of seconds for which it is to run before the client starts."""
        given = {*options, *(f"{key}={value}" for key, value in options.items())}
        return self.lead_s if given & self.lead_options else 0.0

    def _filled(self, argument: str) -> str:
        own = "{programs}/"
        if argument.startswith(own):
            return str(paths.program(argument.removeprefix(own)))
        if argument.startswith("{guest}"):
            return argument.replace("{guest}", str(guest.load().entry.folder))
        return argument.replace("{folder}", str(self.folder))


class LeadTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of `[lead]` in a proxy.toml."""

    seconds: Annotated[float, msgspec.Meta(gt=0)]
    options: tuple[str, ...]


class ProxyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a proxy.toml."""

    name: Annotated[
        str,
        msgspec.Meta(
            pattern=r"^(?!direct\Z)[a-z][a-z0-9-]*\Z",
            description="small letters, digits and -, and not direct",
        ),
    ]
    title: str
    transport: Annotated[Literal["quic", "tcp"], msgspec.Meta(description=f"one of {', '.join(TRANSPORTS)}")]
    places: tuple[str, ...]
    example: str
    commands: dict[Mode, tuple[str, ...]] = {}
    transparent: bool = False
    carries: Carries = "udp"
    lead: LeadTable | None = None
    together: tuple[str, ...] = ()
    options: dict[str, str] = {}


def load(folder: Path) -> ProxyKind:
    """The kind of proxy in `folder`; UsageError if its proxy.toml is not valid."""
    file = folder / "proxy.toml"
    said = strict.read(file, ProxyFile)
    if not said.places or list(said.places) != [one for one in PLACES if one in said.places]:
        raise strict.wrong(file, "places", list(said.places), f"some of {', '.join(PLACES)}, in this order")
    if not said.commands or not all(said.commands.values()):
        raise UsageError(f"{file}: commands: no command", "give `virtual-time` or `sockets` one")
    return ProxyKind(
        folder=folder.resolve(),
        name=said.name,
        title=said.title,
        transport=said.transport,
        places=said.places,
        example=said.example,
        commands={str(mode): words for mode, words in said.commands.items()},
        options=said.options,
        transparent=said.transparent,
        carries=said.carries,
        lead_s=said.lead.seconds if said.lead else 0.0,
        lead_options=frozenset(said.lead.options) if said.lead else frozenset(),
        together=said.together,
    )


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
