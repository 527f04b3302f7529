"""The model of a page: its resources, and which of them leads to which others."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

ResourceType = Literal["document", "stylesheet", "script", "font", "image", "media", "fetch", "other"]
TYPES: tuple[ResourceType, ...] = get_args(ResourceType)
# Of RFC 9218. Chosen here: what rendering waits for, then scripts and what they fetch; 3 is its default.
URGENCY: dict[ResourceType, int] = {
    "document": 0, "stylesheet": 0, "script": 1, "font": 0, "image": 3, "media": 3, "fetch": 1, "other": 3,
}  # fmt: skip
# Chosen here: what servers let browsers keep. A document is asked for again, and so is what scripts ask for.
CACHED: tuple[ResourceType, ...] = ("stylesheet", "script", "font", "image", "media")
MOST_RESOURCES = 10_000
MOST_BYTES = 10**12


class Resource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that a page consists of, as a request gets it."""

    path: Annotated[str, Meta(pattern="^/[!-~]*$", description='a path from the root, as in "/style.css"')]
    type: ResourceType
    # Of the body, as it is transferred.
    bytes: Annotated[int, Meta(ge=0, le=MOST_BYTES)]
    # The path of the resource that leads to it; the first resource has none.
    initiator: str = ""
    # The share of the initiator's bytes that has arrived when it is found.
    found_after: Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")] = 1.0
    # From then until it is asked for: parsing, running a script, a timer.
    wait_ms: Annotated[int, Meta(ge=0, le=3_600_000, description="a whole number from 0 to 3600000")] = 0
    # Of RFC 9218; None: that of its type.
    urgency: Annotated[int, Meta(ge=0, le=7, description="a whole number from 0 to 7")] | None = None

    # Whether a browser that was here before has it and does not ask again; None: as its type has it.
    cached: bool | None = None

    @property
    def is_cached(self) -> bool:
        """Whether a returning browser has it in its cache."""
        return self.type in CACHED if self.cached is None else self.cached

    @property
    def asked_with(self) -> int:
        """The urgency of its request."""
        return URGENCY[self.type] if self.urgency is None else self.urgency


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, dict=True):
    """A page: its document first, and each resource behind its initiator."""

    title: str
    source: str
    resource: tuple[Resource, ...]
    notes: str = ""

    @property
    def size_bytes(self) -> int:
        """Bytes of all bodies."""
        return sum(one.bytes for one in self.resource)

    @property
    def without_cached(self) -> Page:
        """The resources that a returning browser requests. A cached one is available at once: what it leads
        to has the cached one's initiator instead.
        """
        cached: dict[str, Resource] = {}
        asked = []
        for one in self.resource:
            if (before := cached.get(one.initiator)) is not None:
                one = msgspec.structs.replace(
                    one,
                    initiator=before.initiator,
                    found_after=before.found_after,
                    wait_ms=before.wait_ms + one.wait_ms,
                )
            if one.is_cached and one.initiator:
                cached[one.path] = one
            else:
                asked.append(one)
        return msgspec.structs.replace(self, resource=tuple(asked))

    @property
    def by_type(self) -> dict[ResourceType, tuple[int, int]]:
        """The number of resources of each type, and their bytes; types without any are left out."""
        count = Counter(one.type for one in self.resource)
        total = Counter[ResourceType]()
        for one in self.resource:
            total[one.type] += one.bytes
        return {kind: (count[kind], total[kind]) for kind in TYPES if kind in count}

    @cached_property
    def depth(self) -> dict[str, int]:
        """The number of requests, one after the other, until each resource is there, by path: 1 for the
        document.
        """
        found: dict[str, int] = {}
        for one in self.resource:
            found[one.path] = found.get(one.initiator, 0) + 1
        return found

    @property
    def longest_chain(self) -> list[str]:
        """The longest chain of resources that must be requested one after the other, by path."""
        initiators = {one.path: one.initiator for one in self.resource}
        path = max(self.depth, key=lambda one: self.depth[one])
        chain = []
        while path:
            chain.append(path)
            path = initiators[path]
        return chain[::-1]
