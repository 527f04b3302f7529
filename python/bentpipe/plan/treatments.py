"""Treatments: what stands between the ends of a trial.

`direct` is nothing. Any other is a kind of proxies (`bentpipe.stacks.proxies`) and a chain of them: one at
the satellite terminal, one at the gateway, or both, as in `quic-pep
terminal:iw=100,gateway:iw=100:cc=newreno`: places in the order in which a request passes them, each with
the options of its proxy behind it. The canonical form has the options in order of name; it is what records,
seeds and manifests have. Which options there are is for the proxy to know: it refuses what it does not
know, as endpoints do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bentpipe.errors import UsageError, one_of
from bentpipe.labels import treatment as treatment_label
from bentpipe.stacks import proxies as catalogue
from bentpipe.stacks.proxies import PLACES, ProxyKind

DIRECT = "direct"
QUIC_PEP = "quic-pep"  # what chains are of that come without a kind


@dataclass(frozen=True)
class Proxy:
    """A proxy at a place, with its options."""

    place: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return ":".join([self.place, *(f"{key}={value}" for key, value in sorted(self.options.items()))])


@dataclass(frozen=True)
class Treatment:
    """The proxies between client and server, and of what kind they are; none: `direct`."""

    proxies: tuple[Proxy, ...] = ()
    kind: str = QUIC_PEP

    def __str__(self) -> str:
        """The canonical form."""
        return f"{self.kind} {self.chain}" if self.proxies else DIRECT

    @property
    def chain(self) -> str:
        """Its proxies in canonical form."""
        return ",".join(map(str, self.proxies))


def parse(text: str, where: str) -> Treatment:
    """The treatment of a record or manifest, `direct` or `KIND CHAIN`. UsageError that names `where`."""
    named = treatment_label(text.strip())
    if named.kind == DIRECT and not named.chain:
        return Treatment()
    if named.kind == DIRECT or not named.chain:
        raise UsageError(
            f'{where}: "{text}" is no treatment',
            f"write {DIRECT}, or one of {', '.join(catalogue.discover())} and a chain",
        )
    return chain(named.chain, where, named.kind)


def chain(text: str, where: str, name: str = QUIC_PEP) -> Treatment:
    """The chain of proxies of a kind that `text` names. UsageError that names `where` it was given
    otherwise.
    """
    kind = _kind(name, where)
    proxies = [_proxy(part.strip(), text, where, kind) for part in text.split(",")]
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
    return Treatment(tuple(proxies), name)


def _proxy(part: str, text: str, where: str, kind: ProxyKind) -> Proxy:
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
    return Proxy(place, options)


def specs(texts: Iterable[str], where: str) -> tuple[str, ...]:
    """Chains of `quic-pep` in canonical form, each once."""
    return tuple(dict.fromkeys(chain(text, where).chain for text in texts))


def named(texts: Iterable[str], where: str) -> tuple[str, ...]:
    """Treatments as plans name them, each once: `direct`, a kind of proxies, or `KIND=CHAIN`. UsageError for
    what there is not.
    """
    found = []
    for text in texts:
        name, equals, spec = (part.strip() for part in text.partition("="))
        known = (DIRECT, *catalogue.discover())
        if name not in known or (name == DIRECT and equals):
            wrong = text if equals and name in known else name
            raise UsageError(f'{where}: unknown treatment "{wrong}"', _hint(name, known))
        found.append(f"{name}={chain(spec, where, name).chain}" if equals else name)
    return tuple(dict.fromkeys(found))


def _hint(name: str, known: Sequence[str]) -> str:
    if "," in name:
        return "a treatment with a chain stands alone: repeat the option"
    if name.removeprefix(QUIC_PEP).strip().partition(":")[0] in PLACES:
        return f"write {QUIC_PEP}={catalogue.discover()[QUIC_PEP].example}"
    return one_of(name, known, "treatments")


def in_full(names: Sequence[str], chains: Sequence[str]) -> tuple[str, ...]:
    """The treatments of a plan, with a proxy at each place of its kind where one has no chain; `quic-pep` has
    those of `chains`, if there are some. UsageError for a kind that is not here.
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
            found.append(text.replace("=", " ", 1))
    return list(dict.fromkeys(found))


def _kind(name: str, where: str) -> ProxyKind:
    known = catalogue.discover()
    if name not in known:
        hint = f"name the folder that it is in by BENTPIPE_PROXIES; here are {', '.join(known)}"
        raise UsageError(f"{where}: there is no kind of proxies {name} here", hint)
    return known[name]


def short(text: str, others: Iterable[str]) -> str:
    """A treatment's name among `others` of its run: in full where several are of its kind, else its kind."""
    kind = treatment_label(text).kind
    same = {one for one in others if treatment_label(one).kind == kind}
    return kind if len(same) < 2 else text
