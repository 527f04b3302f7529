"""A page while a browser loads it: which requests are under way, what has come, and when it is over."""

from __future__ import annotations

import math
from collections.abc import Iterator

from page_job import Job
from visit import Resource, Visit

# So long after the page was loaded, and nothing is under way, nobody asks for anything any more: behind what
# the page itself has its scripts wait.
QUIET_S = 3.0


class PageLoad:
    """The load of a page, by the events of a browser. Requests have the names that the browser gives them."""

    def __init__(self, job: Job) -> None:
        self.visit = Visit(job)
        self._job = job
        self._numbers: dict[str, int] = {}
        self._under_way: set[str] = set()
        self._wanted = job.visits[0]
        self._is_loaded = False

    def turn_to(self, numbers: range) -> None:
        """From now on it is about these resources, of which the first is a document."""
        self._wanted, self._is_loaded = numbers, False
        self._under_way.clear()

    @property
    def is_whole(self) -> bool:
        """Whether all of these have come."""
        return self.visit.is_whole(self._wanted)

    def begin(self, name: str, url: str) -> bool:
        """A request was made. Whether it is one of the page's, the first for that resource."""
        number = self._job.number_of(url)
        if number is None or number in self._numbers.values():
            return False
        self._numbers[name] = number
        self._under_way.add(name)
        return True

    def of(self, name: str) -> Resource | None:
        """The resource that a request is for; None if it is none of the page's."""
        number = self._numbers.get(name)
        return None if number is None else self.visit.resources[number]

    def finish(self, name: str, at_ns: int | None) -> None:
        """The last byte has come."""
        self._under_way.discard(name)
        one = self.of(name)
        if one is not None and not one.error:
            one.last_byte_ns = at_ns

    def fail(self, name: str, error: str) -> None:
        """The request has failed."""
        self._under_way.discard(name)
        one = self.of(name)
        if one is not None:
            one.error = one.error or error

    def loaded(self) -> None:
        """The browser says that the page is loaded. Of the one before it that does not count."""
        self._is_loaded = self._wanted[0] in self._numbers.values()

    @property
    def is_refused(self) -> bool:
        """Whether there is no document."""
        return bool(self.visit.resources[self._wanted[0]].error)

    def patience_s(self) -> float:
        """How long to wait for the browser's next event, until the page is over."""
        if self.is_refused:
            return 0
        if not self._is_loaded or self._under_way:
            return math.inf
        return 0 if self.is_whole else QUIET_S + self._job.longest_wait_s

    def refuse(self, error: str) -> None:
        """The browser does not go to the document."""
        self.visit.resources[self._wanted[0]].error = error

    def came(self) -> Iterator[tuple[str, Resource]]:
        """The requests whose replies have come and are still in the browser, by their names."""
        for name in self._numbers:
            one = self.of(name)
            if one is not None and one.last_byte_ns is not None and one.body is None:
                yield name, one
