"""Treatments: what stands between the ends of a trial.

`direct` is nothing. Any other is a middlebox (`bentpipe.stacks.middleboxes`) and a chain of it: one at the
satellite terminal, one at the gateway, or both, as in `quic-pep
terminal:iw=100,gateway:iw=100:cc=newreno`: places in the order in which a request passes them, each with
the options of its middlebox behind it. The canonical form has the options in order of name; it is what
records, seeds and manifests have. Which options there are is for its program to know: it refuses what it does
not know, as endpoints do.

`vpn` is a tunnel from the client to the server or the gateway, as in `vpn server:kind=openvpn-udp`. It may
lead through a chain that splits, which stands behind a plus: `vpn server:kind=wireguard+tcp-pep
terminal,gateway`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bentpipe.errors import UsageError, one_of
from bentpipe.labels import OVER, VPN
from bentpipe.labels import treatment as treatment_label
from bentpipe.stacks import middleboxes
from bentpipe.stacks.middleboxes import PLACES, Middlebox

DIRECT = "direct"
QUIC_PEP = "quic-pep"  # the middlebox of chains that name none (`--pep`)


@dataclass(frozen=True)
class PlacedMiddlebox:
    """A middlebox at a place of a chain, with its options."""

    place: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return ":".join([self.place, *(f"{key}={value}" for key, value in sorted(self.options.items()))])


@dataclass(frozen=True)
class Tunnel:
    """A tunnel from the client."""

    kind: str
    to: str  # the host where it ends
    mtu_bytes: int | None = None  # None: what its program has by itself

    def __str__(self) -> str:
        mtu = "" if self.mtu_bytes is None else f":mtu={self.mtu_bytes}"
        return f"{self.to}:kind={self.kind}{mtu}"


@dataclass(frozen=True)
class Treatment:
    """A chain of one middlebox between client and server, and a tunnel through it; neither: `direct`."""

    proxies: tuple[PlacedMiddlebox, ...] = ()
    kind: str = ""  # the name of that middlebox; empty without a chain
    tunnel: Tunnel | None = None

    def __str__(self) -> str:
        """The canonical form."""
        under = f"{self.kind} {self.chain}" if self.proxies else ""
        if self.tunnel is None:
            return under or DIRECT
        return f"{VPN} {self.tunnel}{OVER}{under}" if under else f"{VPN} {self.tunnel}"

    @property
    def chain(self) -> str:
        """Its chain in canonical form."""
        return ",".join(map(str, self.proxies))


def parse(text: str, where: str) -> Treatment:
    """The treatment of a record or manifest, `direct` or `KIND CHAIN`. UsageError that names `where`."""
    named = treatment_label(text.strip())
    if named.kind == DIRECT and not named.chain:
        return Treatment()
    if named.kind == VPN and named.chain:
        end, plus, under = named.chain.partition(OVER)
        return _through(_tunnel(end, where), parse(under, where) if plus else Treatment(), where)
    if named.kind == DIRECT or not named.chain:
        raise UsageError(
            f'{where}: "{text}" is no treatment',
            f"write {DIRECT}, or one of {', '.join([*middleboxes.chains(), VPN])} and a chain",
        )
    return chain(named.chain, where, named.kind)


def chain(text: str, where: str, name: str = QUIC_PEP) -> Treatment:
    """The chain of a middlebox that `text` names; otherwise a UsageError that names `where` it was
    given.
    """
    kind = _kind(name, where)
    proxies = [_proxy(part.strip(), text, where, kind) for part in text.split(",")]
    places = [one.place for one in proxies]
    for place in places:
        if places.count(place) > 1:
            raise UsageError(
                f'{where}: "{text}" has two middleboxes at the {place}',
                "give each place once, with all its options",
            )
    if places != sorted(places, key=PLACES.index):
        right = ",".join(str(one) for one in sorted(proxies, key=lambda one: PLACES.index(one.place)))
        raise UsageError(
            f'{where}: "{text}" has the gateway before the terminal',
            f"a request passes the terminal first: {right}",
        )
    if kind.relays == "encapsulating" and places != list(kind.places):
        raise UsageError(
            f'{where}: "{text}": {name} encapsulates, and nothing takes out what the {places[0]} puts in',
            f"write {name}={kind.default}",
        )
    for option in kind.together:
        having = [one.place for one in proxies if option in one.options]
        if having and having != list(kind.places):
            raise UsageError(
                f'{where}: "{text}": the option "{option}" is at the {having[0]} alone',
                f"it is between those at {' and '.join(kind.places)}: give it to both",
            )
    return Treatment(tuple(proxies), name)


def _proxy(part: str, text: str, where: str, kind: Middlebox) -> PlacedMiddlebox:
    place, *settings = (piece.strip() for piece in part.split(":"))
    if not place:
        raise UsageError(f'{where}: "{text}" has an empty place in it', f"as in {kind.example}")
    if place not in kind.places:
        hint = (
            f"options are joined by colons, as in {kind.example}"
            if "=" in place
            else one_of(place, kind.places, "places")
        )
        raise UsageError(f'{where}: "{text}": unknown place "{place}"', hint)
    options: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value:
            raise UsageError(
                f'{where}: "{part}": "{setting}" is no option', f"write {place}:option=value:option=value"
            )
        if re.search(r"\s", setting):
            raise UsageError(
                f'{where}: "{part}": "{setting}" contains white space', "options are single words"
            )
        if key in options:
            raise UsageError(f'{where}: "{part}": the option "{key}" is given twice', "give it once")
        options[key] = value
    return PlacedMiddlebox(place, options)


def _tunnel(text: str, where: str) -> Tunnel:
    """The tunnel that `text` names, as in `server:kind=openvpn-udp`. UsageError that names `where`
    otherwise.
    """
    example = f"{VPN}=server:kind=openvpn-udp"
    to, *settings = (piece.strip() for piece in text.split(":"))
    options = dict(setting.partition("=")[::2] for setting in settings)
    if len(options) < len(settings):
        raise UsageError(f'{where}: "{text}": an option is given twice', "give each once")
    kind, mtu = options.pop("kind", middleboxes.DEFAULT_TUNNEL), options.pop("mtu", None)
    if options:
        raise UsageError(
            f'{where}: "{text}": {VPN} has no option "{next(iter(options))}"',
            f"kind and mtu, as in {example}",
        )
    known = middleboxes.tunnels()
    if kind not in known:
        raise UsageError(f'{where}: kind: "{kind}" is not valid', one_of(kind, known, "kinds"))
    if to not in (ends := known[kind].far_ends):
        hint = f"as in {example}" if "=" in to else one_of(to, ends, "ends")
        raise UsageError(f'{where}: "{text}": a tunnel cannot end at "{to}"', hint)
    if mtu is not None and not (mtu.isascii() and mtu.isdigit() and int(mtu) in middleboxes.MTUS):
        least, most = middleboxes.MTUS[0], middleboxes.MTUS[-1]
        raise UsageError(f'{where}: mtu: "{mtu}" is not valid', f"a number of bytes, {least} to {most}")
    return Tunnel(kind, to, None if mtu is None else int(mtu))


def _through(tunnel: Tunnel, under: Treatment, where: str) -> Treatment:
    """The treatment of a tunnel through a chain."""
    text = str(dataclasses.replace(under, tunnel=tunnel))
    if under.tunnel is not None:
        raise UsageError(f'{where}: "{text}" is a tunnel in a tunnel', f"write a chain behind the {OVER}")
    if under.proxies and _kind(under.kind, where).relays == "encapsulating":
        what = f"leads through {under.kind}, which encapsulates, too"
        raise UsageError(f'{where}: "{text}" {what}', "give each by itself, as two treatments")
    if any(one.place == tunnel.to for one in under.proxies):
        what = f"has a middlebox at the {tunnel.to}, where the tunnel ends"
        raise UsageError(f'{where}: "{text}" {what}', "let it end at the server")
    return dataclasses.replace(under, tunnel=tunnel)


def _named_tunnel(text: str, where: str) -> str | None:
    """A tunnel as plans name it, in full; None if `text` names none."""
    end, plus, under = (part.strip() for part in text.partition(OVER))
    name, equals, spec = (part.strip() for part in end.partition("="))
    if name != VPN:
        return None
    tunnel = _tunnel(spec if equals else "server", where)
    (one,) = labels(in_full(named([under], where), ()), ()) if plus else (DIRECT,)
    return treatment_label(str(_through(tunnel, parse(one, where), where))).as_option


def specs(texts: Iterable[str], where: str) -> tuple[str, ...]:
    """The given chains of `quic-pep` in canonical form, each once."""
    return tuple(dict.fromkeys(chain(text, where).chain for text in texts))


def named(texts: Iterable[str], where: str) -> tuple[str, ...]:
    """Treatments as plans name them, each once: `direct`, a middlebox, or `NAME=CHAIN`. UsageError for
    an unknown one.
    """
    found = []
    for text in texts:
        if tunnel := _named_tunnel(text, where):
            found.append(tunnel)
            continue
        name, equals, spec = (part.strip() for part in text.partition("="))
        known = (DIRECT, *middleboxes.chains(), VPN)
        if name not in known or (name == DIRECT and equals):
            wrong = text if equals and name in known else name
            raise UsageError(f'{where}: unknown treatment "{wrong}"', _hint(name, known))
        found.append(f"{name}={chain(spec, where, name).chain}" if equals else name)
    return tuple(dict.fromkeys(found))


def _hint(name: str, known: Sequence[str]) -> str:
    if "," in name:
        return "a treatment with a chain stands alone: repeat the option"
    if name.removeprefix(QUIC_PEP).strip().partition(":")[0] in PLACES:
        return f"write {QUIC_PEP}={middleboxes.chains()[QUIC_PEP].example}"
    return one_of(name, known, "treatments")


def in_full(names: Sequence[str], chains: Sequence[str]) -> tuple[str, ...]:
    """The treatments of a plan, with a middlebox at each of its places where one has no chain; `quic-pep`
    gets the `chains`, if there are any. UsageError for a kind that is not here.
    """
    given = {DIRECT, QUIC_PEP} if chains else {DIRECT}
    return tuple(
        one if "=" in one or one in given else f"{one}={_kind(one, 'treatments').default}"
        for one in dict.fromkeys(names)
    )


def labels(names: Sequence[str], chains: Sequence[str]) -> list[str]:
    """The treatments of a plan, as records have them: `quic-pep` without a chain of its own once with each of
    `chains`. UsageError for a kind that is not here.
    """
    found: list[str] = []
    for text in in_full(names, chains):
        if text == QUIC_PEP:
            found += [f"{QUIC_PEP} {one}" for one in chains]
        else:
            parts = text.split(OVER, 1) if text.startswith(f"{VPN}=") else [text]
            found.append(OVER.join(part.replace("=", " ", 1) for part in parts))
    return list(dict.fromkeys(found))


def _kind(name: str, where: str) -> Middlebox:
    known = middleboxes.chains()
    if name not in known:
        hint = f"name the folder that it is in by BENTPIPE_MIDDLEBOXES; here are {', '.join(known)}"
        raise UsageError(f"{where}: there is no middlebox {name} here", hint)
    return known[name]


def short(text: str, others: Iterable[str]) -> str:
    """A treatment's name among `others` of its run: in full where several are of its kind, else its kind."""
    kind = treatment_label(text).kind
    same = {one for one in others if treatment_label(one).kind == kind}
    return kind if len(same) < 2 else text
