"""Pages: which of their resources are found, and which of those is asked for next.

Source: `endpoints/contract/pages.md`. Times are in ns.
"""

from __future__ import annotations

from typing import NamedTuple

from failures import Failed

NO_PAGE = "page: it is no page as endpoints/contract/pages.md has them"
MOST_URGENCY = 7  # RFC 9218 section 4.1
MOST_WAIT_MS = 3_600_000
NANOS_PER_MS = 1_000_000


class Resource(NamedTuple):
    """A resource of a page, as far as a client has to know of it before it is there."""

    initiator: int | None  # the number of the resource that leads to it; None: the page begins with it
    found_after_bytes: int | None  # of the initiator; None: all, with their end
    wait_ms: int  # from then until it is asked for
    urgency: int  # the lowest first
    incremental: bool

    @property
    def priority(self) -> str:
        """The value of its header of that name (RFC 9218 section 5)."""
        return f"u={self.urgency}{', i' if self.incremental else ''}"


def resources(given: object) -> tuple[Resource, ...]:
    """A page as HELLO has it; Failed, in words, if it is none."""
    if not isinstance(given, list):
        raise Failed(f"{NO_PAGE}: no list")
    return tuple(_resource(number, one) for number, one in enumerate(given))


def check(page: tuple[Resource, ...], requests: int) -> None:
    """Failed, in words, for a page that cannot be of so many requests."""
    problem = _problem(page, requests)
    if problem is not None:
        raise Failed(f'page "{len(page)} resources": {problem}')


def _resource(number: int, given: object) -> Resource:
    if not isinstance(given, dict):
        raise Failed(f"{NO_PAGE}: resource {number}: no object")
    for key in Resource._fields:
        value = given.get(key)
        if key in ("initiator", "found_after_bytes") and value is None:
            continue
        fits = type(value) is bool if key == "incremental" else type(value) is int and value >= 0
        if not fits:
            raise Failed(f"{NO_PAGE}: resource {number}: {key}: it cannot be {value!r}")
    return Resource(*map(given.get, Resource._fields))  # type: ignore[arg-type]


def _problem(page: tuple[Resource, ...], requests: int) -> str | None:
    if len(page) != requests:
        return f"there must be one for each of {requests} requests"
    for number, one in enumerate(page):
        if one.initiator is not None and one.initiator >= number:
            return f"resource {number}: it must stand behind its initiator"
        if one.urgency > MOST_URGENCY:
            return f"resource {number}: urgency: it is {MOST_URGENCY} at most"
        if one.wait_ms > MOST_WAIT_MS:
            return f"resource {number}: wait_ms: it is {MOST_WAIT_MS} at most"
    return None


class Discovery:
    """The resources of a page that were found, and those under way."""

    def __init__(self, page: tuple[Resource, ...]) -> None:
        self._page = page
        self._hidden: list[list[int]] = [[] for _ in page]  # by initiator, what was not found yet
        self._waiting: set[tuple[int, int]] = set()  # found, and to be asked for at a time
        self._ready: set[tuple[int, int]] = set()  # to be asked for, by urgency
        self._under_way = 0
        for number, one in enumerate(page):
            if one.initiator is not None:
                self._hidden[one.initiator].append(number)

    @property
    def next_wake(self) -> int | None:
        """When there is more to be asked for, though nothing comes."""
        return min(self._waiting)[0] if self._waiting else None

    @property
    def is_done(self) -> bool:
        """True if all that was found has ended."""
        return not (self._under_way or self._ready or self._waiting)

    def start(self, now_ns: int) -> None:
        """Finds what has no initiator."""
        for number, one in enumerate(self._page):
            if one.initiator is None:
                self._find(now_ns, number)

    def advance(self, now_ns: int) -> None:
        """Says what time it is."""
        due = {(at, number) for at, number in self._waiting if at <= now_ns}
        self._waiting -= due
        self._ready |= {(self._page[number].urgency, number) for _, number in due}

    def ask(self) -> int | None:
        """The next resource to be asked for, if there is one: it is under way then."""
        if not self._ready:
            return None
        first = min(self._ready)
        self._ready.remove(first)
        self._under_way += 1
        return first[1]

    def arrived(self, now_ns: int, number: int, size: int) -> None:
        """So many bytes of a resource have come."""
        for one in list(self._hidden[number]):
            after = self._page[one].found_after_bytes
            if after is not None and after <= size:
                self._hidden[number].remove(one)
                self._find(now_ns, one)

    def ended(self, now_ns: int, number: int, *, is_whole: bool) -> None:
        """A resource has come to its end; one that is not whole leads to nothing more."""
        self._under_way -= 1
        hidden, self._hidden[number] = self._hidden[number], []
        if is_whole:
            for one in hidden:
                self._find(now_ns, one)

    def _find(self, now_ns: int, number: int) -> None:
        self._waiting.add((now_ns + self._page[number].wait_ms * NANOS_PER_MS, number))
