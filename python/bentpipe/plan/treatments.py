"""Treatments: what stands between the ends of a trial.

`direct` is nothing. `quic-pep` is a chain of proxies that split the connection: one at the satellite
terminal, one at the gateway, or both. A chain is written `terminal:iw=100,gateway:iw=100:cc=newreno`: places
in the order in which a request passes them, each with the options of its proxy behind it. The canonical form
has the options in order of name; it is what records, seeds and manifests have. Which options there are is for
the proxy to know: it refuses what it does not know, as endpoints do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bentpipe.errors import UsageError, one_of

DIRECT = "direct"
QUIC_PEP = "quic-pep"
KINDS = (DIRECT, QUIC_PEP)
PLACES = ("terminal", "gateway")  # as a client meets them
DEFAULT = ",".join(PLACES)
PROGRAM = "bentpipe-pep"
EXAMPLE = "terminal:iw=100:cc=newreno,gateway:iw=100:cc=newreno"


@dataclass(frozen=True)
class Proxy:
    """A proxy at a place, with its options."""

    place: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return ":".join([self.place, *(f"{key}={value}" for key, value in sorted(self.options.items()))])


@dataclass(frozen=True)
class Treatment:
    """The proxies between client and server; none: `direct`."""

    proxies: tuple[Proxy, ...] = ()

    def __str__(self) -> str:
        """The canonical form."""
        return f"{QUIC_PEP} {','.join(map(str, self.proxies))}" if self.proxies else DIRECT


def parse(text: str, where: str) -> Treatment:
    """The treatment of a record or manifest, `direct` or `quic-pep SPEC`. UsageError that names `where`."""
    kind, _, spec = text.strip().partition(" ")
    if kind not in KINDS or (kind == DIRECT) != (not spec):
        raise UsageError(
            f'{where}: "{text}" is no treatment', f"write {DIRECT}, or {QUIC_PEP} and a chain: {EXAMPLE}"
        )
    return Treatment() if kind == DIRECT else chain(spec, where)


def chain(text: str, where: str) -> Treatment:
    """The chain of proxies that `text` names. UsageError that names `where` it was given otherwise."""
    proxies = [_proxy(part.strip(), text, where) for part in text.split(",")]
    places = [one.place for one in proxies]
    for place in places:
        if places.count(place) > 1:
            raise UsageError(
                f'{where}: "{text}" has two proxies at the {place}',
                "give each place once, with all its options",
            )
    if places != sorted(places, key=PLACES.index):
        right = ",".join(str(one) for one in sorted(proxies, key=lambda one: PLACES.index(one.place)))
        raise UsageError(
            f'{where}: "{text}" has the gateway before the terminal',
            f"a request passes the terminal first: {right}",
        )
    return Treatment(tuple(proxies))


def _proxy(part: str, text: str, where: str) -> Proxy:
    place, *settings = (piece.strip() for piece in part.split(":"))
    if not place:
        raise UsageError(f'{where}: "{text}" has an empty place in it', f"as in {EXAMPLE}")
    if place not in PLACES:
        hint = (
            f"options are joined by colons, as in {EXAMPLE}"
            if "=" in place
            else one_of(place, PLACES, "places")
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
    return Proxy(place, options)


def specs(texts: Iterable[str], where: str) -> tuple[str, ...]:
    """Chains in canonical form, each once."""
    known = [str(chain(text, where)).removeprefix(f"{QUIC_PEP} ") for text in texts]
    return tuple(dict.fromkeys(known))


def kinds(texts: Iterable[str], where: str) -> tuple[str, ...]:
    """Names of treatments, each once. UsageError for one that there is not."""
    names = tuple(dict.fromkeys(text.strip() for text in texts))
    for name in names:
        if name not in KINDS:
            chained = name.removeprefix(QUIC_PEP).strip().partition(":")[0] in PLACES
            hint = (
                f"write {QUIC_PEP}, and its proxies with pep"
                if chained
                else one_of(name, KINDS, "treatments")
            )
            raise UsageError(f'{where}: unknown treatment "{name}"', hint)
    return names


def labels(names: Sequence[str], chains: Sequence[str]) -> list[str]:
    """The treatments of a plan, as records have them: `quic-pep` once with each of the chains; with none, a
    proxy at each place.
    """
    found: list[str] = []
    for name in names:
        found += [DIRECT] if name == DIRECT else [f"{name} {text}" for text in chains or (DEFAULT,)]
    return found


def short(text: str, others: Iterable[str]) -> str:
    """A treatment's name among `others` of its run: in full where several are of its kind, else its kind."""
    kind = text.partition(" ")[0]
    same = {one for one in others if one.partition(" ")[0] == kind}
    return kind if len(same) < 2 else text
