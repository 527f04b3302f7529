"""Parsed labels: the names that plans, records and manifests give to variants, scenarios and treatments.

Each is taken apart here alone, once per text. Whether what it names is there, and can be meant, is for the
rooms that know stacks, scenarios and proxies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

VPN = "vpn"  # the treatment that is a tunnel
OVER = "+"  # before the proxies that a tunnel leads through
_QUEUE = "forward.queue"
_KEPT = 4096  # labels whose parts are remembered; to a slider of explore there is no end of them


@dataclass(frozen=True)
class VariantLabel:
    """The label of a stack with its options, `quinn:cc=cubic:iw=100`."""

    stack: str
    settings: tuple[str, ...]  # as they are written

    @cached_property
    def options(self) -> Mapping[str, str]:
        """The settings as name → value."""
        return _by_name(self.settings)


@dataclass(frozen=True)
class ScenarioLabel:
    """The label of a scenario with what was set in it, `sat,forward.queue=1BDP`."""

    name: str
    settings: tuple[str, ...]  # KEY=VALUE

    def __str__(self) -> str:
        return ",".join((self.name, *self.settings))

    @cached_property
    def values(self) -> Mapping[str, str]:
        """The settings as key → value."""
        return _by_name(self.settings)

    @property
    def queue(self) -> str:
        """The queue towards the client, as in `1 BDP` or `1 BDP codel ecn=off`; "" if none was set."""
        keys = dict(self.queue_keys)
        shown = [keys.pop("size", ""), keys.pop("aqm", ""), *(f"{key}={keys[key]}" for key in keys)]
        text = " ".join(one for one in shown if one)
        return text.replace("BDP", " BDP").replace("packets", " packets")

    @property
    def queue_keys(self) -> Mapping[str, str]:
        """The keys of the queue towards the client, `size` and `aqm` among them; empty if none was set."""
        text = self.values.get(_QUEUE, "")
        if text.startswith("{"):
            return _by_name(tuple(text.strip("{}").replace('"', "").split(",")))
        return {"size": text} if text else {}

    @property
    def without_queue(self) -> ScenarioLabel:
        """The label of the same scenario without that setting."""
        kept = (one for one in self.settings if not one.startswith(f"{_QUEUE}="))
        return ScenarioLabel(self.name, tuple(kept))


@dataclass(frozen=True)
class TreatmentLabel:
    """The label of a treatment: `direct`, `quic-pep terminal:iw=9,gateway`, `vpn server+tcp-pep gateway`."""

    kind: str
    chain: str  # of proxies, or a tunnel's end and what it leads through; "" of `direct`

    @property
    def as_option(self) -> str:
        """The label in the form that `--treatment` takes."""
        if not self.chain:
            return self.kind
        first, plus, under = self.chain.partition(OVER) if self.kind == VPN else (self.chain, "", "")
        return f"{self.kind}={first}{plus}{under.replace(' ', '=', 1)}"


@lru_cache(_KEPT)
def variant(text: str) -> VariantLabel:
    """The label of a variant."""
    stack, *settings = text.split(":")
    return VariantLabel(stack, tuple(settings))


@lru_cache(_KEPT)
def scenario(text: str) -> ScenarioLabel:
    """The label of a scenario; the value of a setting may have commas in it, as tables and lists do."""
    name, *parts = text.split(",")
    settings: list[str] = []
    for part in parts:
        is_open = bool(settings) and _is_open(settings[-1])
        if ("=" in part and not is_open) or not settings:
            settings.append(part)
        else:
            settings[-1] += f",{part}"
    return ScenarioLabel(name, tuple(settings))


def _is_open(text: str) -> bool:
    """Whether a table or list that begins in a text does not end in it."""
    return any(text.count(opening) > text.count(closing) for opening, closing in ("{}", "[]"))


@lru_cache(_KEPT)
def treatment(text: str) -> TreatmentLabel:
    """The label of a treatment."""
    kind, _, chain = text.partition(" ")
    return TreatmentLabel(kind, chain)


def _by_name(settings: tuple[str, ...]) -> dict[str, str]:
    return dict(setting.partition("=")[::2] for setting in settings)
