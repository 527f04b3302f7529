"""The initiator of each resource of a recorded visit, and when the resource was found in it.

Chromium names what led to a resource, or the scripts that had called each other when it was asked for. Of
these it waited for the one that arrived last: the innermost is often a library that was there long
before. Elsewhere the request's Referer shows what a stylesheet or a frame asked for, and all else counts as
the document's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from bentpipe.workload.page.har_answer import LONGEST_MS
from bentpipe.workload.page.har_entries import Kept
from bentpipe.workload.page.har_format import Initiator, without_fragment

_DOCUMENT = 0
_ROUNDED_MS = 1.0  # starts are whole milliseconds


def initiators(kept: Sequence[Kept]) -> list[int | None]:
    """The number of each resource's initiator; the document, which is the first, has none."""
    named: list[int | None] = []
    earlier: dict[str, list[int]] = {}
    for number, one in enumerate(kept):
        named.append(None if number == _DOCUMENT else _initiator(one, kept, earlier))
        earlier.setdefault(one.url, []).append(number)
    return named


def _initiator(own: Kept, kept: Sequence[Kept], earlier: dict[str, list[int]]) -> int:
    """`earlier`: the numbers of what was asked for before it, by URL."""
    initiator = own.entry.initiator
    if isinstance(initiator, str):
        initiator = Initiator(url=initiator)
    if initiator is not None:
        named = _known([initiator.url or ""], earlier)
        if named:
            return named[0]
        called = _known(initiator.frames, earlier)
        if called:
            return _last_to_come(called, own, kept)
    return next(iter(_known([_referer(own)], earlier)), _DOCUMENT)


def _known(urls: Iterable[str], earlier: dict[str, list[int]]) -> list[int]:
    return [number for url in urls for number in earlier.get(without_fragment(url), ())]


def _last_to_come(called: list[int], own: Kept, kept: Sequence[Kept]) -> int:
    """The script or document whose last byte arrived latest before `own` was requested."""
    there = [number for number in called if kept[number].last_ms <= own.asked_ms + _ROUNDED_MS]
    return max(there, key=lambda number: kept[number].last_ms) if there else called[0]


def _referer(own: Kept) -> str:
    """Empty: none, or one that names an origin alone, which is all that other origins get."""
    referer = own.entry.request.header("referer")
    try:
        there, here = urlsplit(referer), urlsplit(own.url)
    except ValueError:
        return ""
    is_told_in_full = (there.scheme, there.netloc) == (here.scheme, here.netloc)
    return referer if is_told_in_full or there.path.strip("/") or there.query else ""


def found(own: Kept, initiator: Kept) -> tuple[float, int]:
    """The share of the initiator's bytes that had arrived, and the milliseconds after the last of them."""
    came_ms = initiator.last_ms - initiator.first_ms
    if own.asked_ms >= initiator.last_ms:
        return 1.0, min(round(own.asked_ms - initiator.last_ms), LONGEST_MS)
    since_ms = max(own.asked_ms - initiator.first_ms, 0.0)
    return (round(since_ms / came_ms, 3) if came_ms > 0 else 0.0), 0
