"""Which middleboxes there are: the folders with a `middlebox.toml`, found as stacks are.

A middlebox stands between client and server. Most stand at the terminal, at the gateway or at both, in a
chain that bears their name as a treatment (`quic-pep`). Others attach at the client, by a TUN device that
takes all its packets, and end at another host: these are tunnels, the kinds of the treatment `vpn`.

Folders are looked for in Bentpipe's own `middleboxes/` and in `BENTPIPE_MIDDLEBOXES`. A later folder replaces
an earlier one of the same name. What a program must do to be a middlebox says
`endpoints/contract/middleboxes.md`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from bentpipe import paths, strict
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.stacks import distribution, guest
from bentpipe.stacks.build_table import BuildTable, build_of
from bentpipe.stacks.distribution import Package
from bentpipe.stacks.installable import Installable
from bentpipe.stacks.model import Carries, Mode, Transport

Ends = Literal["quic", "tcp", "nothing"]
Relays = Literal["split", "transparent", "encapsulating"]
CLIENT = "client"  # where tunnels attach
PLACES = ("terminal", "gateway")  # of chains, as a client meets them
TUNNEL_ENDS = ("gateway", "server")  # where a tunnel from the client can end
DEFAULT_TUNNEL = "wireguard"
MTUS = range(1280, 1501)  # what IPv6 needs, and what Ethernet carries
DEVICE = Path("/dev/net/tun")
FILE = "middlebox.toml"
OF_CHAINS = ("example", "lead", "together", "deterministic")  # keys that mean nothing to a tunnel
OF_TUNNELS = ("kinds", "version")  # keys that mean nothing in a chain
_FOLDERS, _OLD_FOLDERS = "BENTPIPE_MIDDLEBOXES", "BENTPIPE_PROXIES"


class TunnelKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of tunnel, as `[kinds]` of a middlebox.toml has it."""

    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]  # where the far end listens
    transport: Literal["udp", "tcp"]  # over which its packets go


class LeadTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[lead]` of a middlebox.toml."""

    seconds: Annotated[int, msgspec.Meta(gt=0)]  # whole ones: clocks of programs differ by them
    options: tuple[str, ...]


class MiddleboxFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a middlebox.toml."""

    name: Annotated[
        str,
        msgspec.Meta(
            pattern=r"^(?!direct\Z|vpn\Z)[a-z][a-z0-9-]*\Z",
            description="small letters, digits and -, and neither direct nor vpn",
        ),
    ]
    title: str
    home: str = ""
    ends: Ends
    relays: Relays
    places: tuple[str, ...]
    example: str = ""
    carries: Carries = "udp"
    deterministic: bool = False
    notes: str = ""
    commands: dict[Mode, tuple[str, ...]]
    lead: LeadTable | None = None
    together: tuple[str, ...] = ()
    options: dict[str, str] = {}
    kinds: dict[str, TunnelKind] = {}
    mtu: Annotated[int, msgspec.Meta(ge=68, le=65535)] | None = None
    version: tuple[str, ...] = ()
    package: Package | None = None
    build: BuildTable | None = None


@dataclass(frozen=True, kw_only=True)
class Middlebox(Installable):
    """A parsed `middlebox.toml`."""

    FILE = FILE

    title: str
    home: str
    ends: Ends  # whose connections it ends
    relays: Relays  # how it carries on what it is sent
    places: tuple[str, ...]  # where it can stand, in the order in which a request passes them
    example: str  # a chain
    carries: Carries  # what its datagrams are in virtual time
    deterministic: bool  # whether the same HELLO and the same RUNs give the same RANs
    notes: str  # why not, if it does not
    commands: Mapping[str, tuple[str, ...]]  # mode → arguments, with placeholders
    lead_s: float  # how long it is there before the client, with one of these options
    lead_options: frozenset[str]  # as `mode=warm`, or `pool` whatever it is
    together: tuple[str, ...]  # options that are given at all places, or at none
    options: Mapping[str, str]  # name → what it means
    kinds: Mapping[str, TunnelKind]  # of tunnels that it carries
    mtu_bytes: int | None  # the largest packet that it encapsulates; None: it does not say
    version_words: tuple[str, ...]  # behind its command: it prints its version
    package: Package | None  # of the distribution, where its program comes with one

    @property
    def is_tunnel(self) -> bool:
        """Whether it attaches at the client."""
        return CLIENT in self.places

    @property
    def far_ends(self) -> tuple[str, ...]:
        """Where it can end, if it is a tunnel."""
        return tuple(place for place in self.places if place in TUNNEL_ENDS)

    @property
    def tunnel_mtu_bytes(self) -> int:
        """That of its tunnels, unless another is asked for: Ethernet's, where it does not say."""
        return self.mtu_bytes or MTUS[-1]

    @property
    def has_devices(self) -> bool:
        """Whether it takes IP packets in real time from TUN devices."""
        return self.is_tunnel or (self.ends == "nothing" and self.carries == "ip")

    @property
    def default(self) -> str:
        """The chain that has one at each place."""
        return ",".join(self.places)

    def passes(self, transport: Transport) -> bool:
        """Whether connections over a transport protocol can go through it."""
        if self.ends == "nothing":
            return transport == "quic" or self.carries == "ip"
        return transport == self.ends

    def _places(self) -> dict[str, Callable[[], str | Path]]:
        return super()._places() | {"{guest}": lambda: guest.load().entry.folder}

    def programs(self) -> list[str]:
        return self.built_programs(self.commands.values())

    def not_installed(self) -> str | None:
        if self.build is not None:
            return super().not_installed()
        return self.package.missing() if self.package is not None else None

    @property
    def how_to_install(self) -> str:
        """The command that brings it."""
        if self.package is not None:
            return self.package.how_to_install
        return super().how_to_install if self.build is not None else paths.repair()

    def command(self, mode: str) -> list[str]:
        """The argument list that starts it in `mode`. BentpipeError if its program is not there, UsageError
        if it has no such mode.
        """
        if mode not in self.commands:
            raise UsageError(f"{self.name} offers no mode {mode}", f"it has {', '.join(self.commands)}")
        words = self.commands[mode]
        if any("{guest}" in word for word in words) and (why := guest.load().not_installed()):
            what = f"{self.name} lives in a guest in virtual time, and the guest is not installed: {why}"
            raise BentpipeError(what, "install it with `bentpipe stacks install linux`")
        if why := self.not_installed():
            raise BentpipeError(f"the middlebox {self.name} is not installed: {why}", self.how_to_install)
        for word in words:
            if word.startswith("{programs}/"):  # an error if it was not built
                paths.program(word.removeprefix("{programs}/"))
        return self.fill(words)

    def lead(self, options: Mapping[str, str]) -> float:
        """For how many seconds it is to be there before the client."""
        given = {*options, *(f"{key}={value}" for key, value in options.items())}
        return self.lead_s if given & self.lead_options else 0.0

    def to_mapping(self) -> dict[str, object]:
        """Its description, in the form that `--json` prints."""
        return {
            "name": self.name,
            "title": self.title,
            "home": self.home,
            "ends": self.ends,
            "relays": self.relays,
            "places": list(self.places),
            "kinds": list(self.kinds),
            "modes": list(self.commands),
            "deterministic": self.deterministic,
            "options": dict(self.options),
            "not_installed": self.not_installed(),
            "folder": str(self.folder),
        }

    @cached_property
    def version(self) -> str:
        """The output of `--version`: its name and its version. BentpipeError if it is not there."""
        return distribution.version_of((*self.command("sockets"), *self.version_words))

    def version_in(self, place: Path) -> str | None:
        """The same of one whose {bin} is `place`; None for one in a chain, which is not asked."""
        if not self.version_words:
            return None
        return distribution.version_of((*self.fill(self.commands["sockets"], place), *self.version_words))


def load(folder: Path) -> Middlebox:
    """The middlebox of `folder`; UsageError if its middlebox.toml is not whole and right."""
    file = folder / FILE
    said = strict.read(file, MiddleboxFile)
    _check(said, file)
    return Middlebox(
        folder=folder.resolve(),
        name=said.name,
        title=said.title,
        home=said.home,
        ends=said.ends,
        relays=said.relays,
        places=said.places,
        example=said.example or ",".join(said.places),
        carries=said.carries,
        deterministic=said.deterministic,
        notes=said.notes,
        commands={str(mode): words for mode, words in said.commands.items()},
        lead_s=said.lead.seconds if said.lead else 0.0,
        lead_options=frozenset(said.lead.options) if said.lead else frozenset(),
        together=said.together,
        options=said.options,
        kinds=said.kinds,
        mtu_bytes=said.mtu,
        version_words=said.version,
        package=said.package,
        build=build_of(said.build, file) if said.build else None,
    )


def _check(said: MiddleboxFile, file: Path) -> None:
    """UsageError if its keys do not go together."""
    known = PLACES if CLIENT not in said.places else (CLIENT, *TUNNEL_ENDS)
    if not said.places or list(said.places) != [one for one in known if one in said.places]:
        wanted = (
            f"some of {', '.join(PLACES)}, or {CLIENT} and some of {', '.join(TUNNEL_ENDS)}, in this order"
        )
        raise strict.wrong(file, "places", list(said.places), wanted)
    if not said.commands or not all(said.commands.values()):
        raise UsageError(f"{file}: commands: no command", "give `virtual-time` or `sockets` one")
    if (said.relays == "encapsulating") != (said.ends == "nothing"):
        wanted = '"encapsulating" where ends = "nothing", and only there'
        raise strict.wrong(file, "relays", said.relays, wanted)
    if said.ends == "nothing" and len(said.places) < 2:
        wanted = "at least two where it encapsulates: one wraps what the other unwraps"
        raise strict.wrong(file, "places", list(said.places), wanted)
    if said.mtu is not None and said.ends != "nothing":
        raise UsageError(
            f"{file}: mtu: is for middleboxes that encapsulate", "leave it out, or correct `ends`"
        )
    if CLIENT in said.places:
        if not (said.kinds and said.version and said.ends == "nothing" and [*said.commands] == ["sockets"]):
            raise UsageError(
                f"{file}: places: one that attaches at the client is a tunnel in real time",
                'give it ends = "nothing", a command for `sockets` alone, `version`, and [kinds.NAME] with '
                "port and transport; in virtual time middleboxes stand at the terminal and the gateway",
            )
        _refuse(file, {key: getattr(said, key) for key in OF_CHAINS}, "in a chain")
        for option in said.options.keys() - {"mtu"}:
            what = f"{file}: options: {option}: a tunnel is told no options but mtu"
            raise UsageError(what, "leave it out, or give each choice one of [kinds]")
    else:
        _refuse(file, {key: getattr(said, key) for key in OF_TUNNELS}, f"at the {CLIENT}")


def _refuse(file: Path, keys: Mapping[str, object], where: str) -> None:
    """UsageError if one of `keys`, which are for middleboxes elsewhere, has a value."""
    for key, value in keys.items():
        if value:
            raise UsageError(
                f"{file}: {key}: is for middleboxes {where}", "leave it out, or correct `places`"
            )


@cache
def discover() -> Mapping[str, Middlebox]:
    """All middleboxes by name, in order of name."""
    if _OLD_FOLDERS in os.environ:
        raise UsageError(f"{_OLD_FOLDERS} is not read any more", f"name the folders in {_FOLDERS}")
    named = [Path(entry) for entry in os.environ.get(_FOLDERS, "").split(":") if entry]
    found: dict[str, Middlebox] = {}
    for place in (paths.middleboxes(), *named):
        folders = [place] if (place / FILE).is_file() else _with_middlebox(place)
        if not folders:
            raise UsageError(f"{place}: no {FILE} in it or one level below", f"see {_FOLDERS}")
        found |= {one.name: one for one in map(load, folders)}
    kinds = [(kind, one) for one in found.values() for kind in one.kinds]
    for kind, one in kinds:
        for other in (it for name, it in kinds if name == kind and it is not one):
            raise UsageError(f"{one.file}: kinds: {other.name} has {kind}, too", "give it another name")
    return dict(sorted(found.items()))


def _with_middlebox(place: Path) -> list[Path]:
    return sorted(file.parent for file in place.glob(f"*/{FILE}"))


def chains() -> dict[str, Middlebox]:
    """Those that stand in a chain, each a treatment of its name."""
    return {name: one for name, one in discover().items() if not one.is_tunnel}


def tunnels() -> dict[str, Middlebox]:
    """The kinds of tunnels, with the middlebox of each."""
    return {kind: one for one in discover().values() for kind in one.kinds}


def check_device() -> None:
    """BentpipeError if this user cannot make the devices that tunnels need."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        is_there = DEVICE.exists()
        what = f"{DEVICE} cannot be opened" if is_there else f"there is no {DEVICE}"
        hint = f"run as root, or: sudo chmod 666 {DEVICE}" if is_there else "try: sudo modprobe tun"
        raise BentpipeError(f"tunnels need TUN devices, and {what}", hint)
